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

class PendingHandshake : public std::enable_shared_from_this<PendingHandshake> {
 public:
  using Done = std::function<void(Stream proven)>;  // an empty stream: it failed, and is closed

  PendingHandshake(Loop::State& loop, FileDescriptor socket, const StreamKey& key);
  ~PendingHandshake();
  // `done` comes once, within the deadline; before it, `spoke` once when the peer's first message is one of a peer with
  // the secret, which may still be a repetition of what another peer sent.
  void start(std::chrono::milliseconds deadline, std::function<void()> spoke, Done done);
  void give_up();

 private:
  void go_on();
  void finish(Stream proven);

  Stream stream_;
  asio::posix::stream_descriptor watch_;  // lends the stream's socket, released before the stream goes
  asio::steady_timer timer_;
  std::function<void()> spoke_;
  Done done_;
};

}  // namespace dtrain::net
