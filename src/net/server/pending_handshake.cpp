#include "pending_handshake.hpp"

#include <sys/socket.h>

#include <asio/read.hpp>
#include <asio/write.hpp>

#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::net {

PendingHandshake::PendingHandshake(Loop::State& loop, FileDescriptor socket, std::string_view secret)
    : socket_(loop.context), timer_(loop.context), handshake_(Role::accepted, secret, kControlHello) {
  asio::error_code failed;  // then the first read or write fails too
  socket_.assign(asio::generic::stream_protocol(AF_INET, 0), socket.get(), failed);
  if (!failed) socket.release();
}

void PendingHandshake::start(std::chrono::milliseconds deadline, Done done) {
  done_ = std::move(done);
  timer_.expires_after(deadline);
  timer_.async_wait([self = shared_from_this()](asio::error_code error) {
    if (!error) self->give_up();
  });
  go_on();
}

void PendingHandshake::go_on() {
  outgoing_ = handshake_.take_output();
  if (outgoing_.empty()) return read_wanted();
  asio::async_write(socket_, asio::buffer(outgoing_), [self = shared_from_this()](asio::error_code error, std::size_t) {
    if (error) return self->give_up();
    self->read_wanted();
  });
}

void PendingHandshake::read_wanted() {
  if (!done_) return;
  if (handshake_.wanted() == 0) return finish(FileDescriptor(socket_.release()));
  incoming_.resize(handshake_.wanted());
  asio::async_read(socket_, asio::buffer(incoming_), [self = shared_from_this()](asio::error_code error, std::size_t) {
    if (error) return self->give_up();
    try {
      self->handshake_.receive(self->incoming_);
      const bool proven = self->handshake_.wanted() == 0;
      if (proven && self->handshake_.peer_hello() != kControlHello) return self->give_up();
    } catch (const RemoteError&) {
      return self->give_up();
    }
    self->go_on();
  });
}

void PendingHandshake::give_up() { finish(FileDescriptor()); }

void PendingHandshake::finish(FileDescriptor proven) {
  timer_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
  if (const Done done = std::exchange(done_, nullptr)) done(std::move(proven));
}

}  // namespace dtrain::net
