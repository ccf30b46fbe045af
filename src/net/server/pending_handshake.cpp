#include "pending_handshake.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::net {

PendingHandshake::PendingHandshake(Loop::State& loop, FileDescriptor socket, const StreamKey& key)
    : stream_(std::move(socket), Role::accepted, key), watch_(loop.context), timer_(loop.context) {
  asio::error_code failed;  // then the first wait fails too
  watch_.assign(stream_.socket(), failed);
}

PendingHandshake::~PendingHandshake() {
  if (watch_.is_open()) watch_.release();
}

void PendingHandshake::start(std::chrono::milliseconds deadline, std::function<void()> spoke, Done done) {
  spoke_ = std::move(spoke);
  done_ = std::move(done);
  timer_.expires_after(deadline);
  timer_.async_wait([self = shared_from_this()](asio::error_code error) {
    if (!error) self->give_up();
  });
  go_on();
}

void PendingHandshake::go_on() {
  if (!done_) return;
  Stream::Handshake next;
  try {
    next = stream_.shake_hands();
  } catch (const RemoteError&) {  // a peer without the secret is no event for the user
    return give_up();
  }
  if (next == Stream::Handshake::done) return finish(std::move(stream_));
  if (stream_.has_answered()) {
    if (const auto spoke = std::exchange(spoke_, nullptr)) spoke();
  }
  const bool reads = next == Stream::Handshake::wants_read;
  watch_.async_wait(reads ? watch_.wait_read : watch_.wait_write,
                    [self = shared_from_this()](asio::error_code error) { error ? self->give_up() : self->go_on(); });
}

void PendingHandshake::give_up() { finish(Stream()); }

void PendingHandshake::finish(Stream proven) {
  timer_.cancel();
  if (watch_.is_open()) watch_.release();
  stream_ = Stream();
  spoke_ = nullptr;
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(proven));
}

}  // namespace dtrain::net
