// An accepted connection until its peer proves the secret: drives the handshake of a Stream on the loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include <dtrain/net/stream.hpp>

#include "loop_state.hpp"

namespace dtrain::net {

// The purpose of control connections; other ports of a job have other ones.
constexpr const char* kControlPurpose = "control";

class PendingHandshake : public std::enable_shared_from_this<PendingHandshake> {
 public:
  using Done = std::function<void(Stream proven)>;  // an empty stream: it failed, and is closed

  PendingHandshake(Loop::State& loop, FileDescriptor socket, const StreamKey& key);
  ~PendingHandshake();
  // `done` comes once, within the deadline.
  void start(std::chrono::milliseconds deadline, Done done);
  void give_up();
  std::chrono::steady_clock::time_point since() const { return since_; }

 private:
  void go_on();
  void finish(Stream proven);

  Stream stream_;
  asio::posix::stream_descriptor watch_;  // lends the stream's socket, released before the stream goes
  asio::steady_timer timer_;
  Done done_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace dtrain::net
