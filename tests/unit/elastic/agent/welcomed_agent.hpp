// The coordinator's end of one agent under test.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/welcome.hpp"
#include "agent/wire.hpp"

namespace dtrain::elastic {

// Welcomes each agent that connects, and then sends it these frames.
class FrameSender {
 public:
  explicit FrameSender(std::vector<std::string> frames)
      : frames_(std::move(frames)), thread_([this] { loop_.run(); }) {}
  ~FrameSender() { loop_.stop(); }
  FrameSender(const FrameSender&) = delete;
  AgentOrder order(const std::string& folder) const {
    return {.address = "127.0.0.1",
            .more_addresses = {},
            .port = listener_.port(),
            .token = "token",
            .host = "w1",
            .job_folder = folder,
            .tree = "tree"};
  }

 private:
  void welcome(const std::shared_ptr<net::Channel>& agent) {
    agent->listen({.on_frame = [](const std::string&) {}, .on_close = [](const std::string&) {}});
    NetworkAgentPoolOptions options{.token = "token", .job_folder = {}, .job = {}};
    options.environment = {"PATH=/usr/bin:/bin"};
    agent->send(welcome_frame(options, {}));
    for (const std::string& frame : frames_) agent->send(frame);
    agents_.push_back(agent);
  }

  const std::vector<std::string> frames_;
  std::vector<std::shared_ptr<net::Channel>> agents_;
  net::Loop loop_;
  const net::Listener listener_{loop_, "127.0.0.1", "token", [this](const auto& agent) { welcome(agent); }};
  const std::jthread thread_;
};

}  // namespace dtrain::elastic
