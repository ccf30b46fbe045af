// An accepted connection until it proves the secret: the asynchronous driver of the handshake.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <asio/generic/stream_protocol.hpp>
#include <asio/steady_timer.hpp>

#include "handshake_steps.hpp"
#include "loop_state.hpp"

namespace dtrain::net {

// What both sides of a control connection say of themselves; another kind of port of the same job says something else.
constexpr std::string_view kControlHello = "dtrain control 1";

class PendingHandshake : public std::enable_shared_from_this<PendingHandshake> {
 public:
  using Done = std::function<void(FileDescriptor proven)>;  // without a descriptor: it failed, and is closed

  PendingHandshake(Loop::State& loop, FileDescriptor socket, std::string_view secret);
  // `done` comes once, within the deadline.
  void start(std::chrono::milliseconds deadline, Done done);
  void give_up();
  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  void go_on();
  void read_wanted();
  void finish(FileDescriptor proven);

  asio::generic::stream_protocol::socket socket_;
  asio::steady_timer timer_;
  Handshake handshake_;
  Done done_;
  std::string outgoing_, incoming_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace dtrain::net
