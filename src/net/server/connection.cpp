#include "connection.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <dtrain/base/error.hpp>

#include "sockets.hpp"

namespace dtrain::net {
namespace {

// How long a peer may take to close after we said that nothing follows.
constexpr std::chrono::seconds kLastWait{2};

std::string reason_of(asio::error_code error) {
  if (error == asio::error::eof || error == asio::error::connection_reset) return "the peer closed the connection";
  return "the connection broke: " + error.message();
}

}  // namespace

void Connection::send(std::string frame) {
  std::string trouble;
  if (frame.size() > kMaxFrame) trouble = fmt::format("a frame of {} bytes is too large to send", frame.size());
  std::string bytes = frame_header(frame.size()) + frame;
  if (unsent_.fetch_add(bytes.size()) + bytes.size() > kMaxUnsent) trouble = "the peer does not read what it is sent";
  if (loop_.ending) return;
  if (trouble.empty()) {
    on_loop([bytes = std::move(bytes)](Connection& self) mutable { self.queue(std::move(bytes)); });
  } else {
    // Posted: on_close must not run inside the caller's send().
    asio::post(loop_.context, [self = shared_from_this(), trouble] { self->close(trouble); });
  }
}

void Connection::queue(std::string bytes) {
  if (ended_ || finishing_) {
    unsent_ -= bytes.size();
    return;
  }
  queued_.push_back(std::move(bytes));
  if (writing_.empty()) write_queued();
}

void Connection::write_queued() {
  writing_ = std::exchange(queued_, {});
  std::vector<asio::const_buffer> buffers;
  for (const std::string& frame : writing_) buffers.push_back(asio::buffer(frame));
  asio::async_write(socket_, buffers, [self = shared_from_this()](asio::error_code error, std::size_t size) {
    if (self->ended_) return;
    self->unsent_ -= size;
    if (error) return self->close(reason_of(error));
    self->writing_.clear();
    if (!self->queued_.empty()) {
      self->write_queued();
    } else if (self->finishing_) {
      self->say_that_nothing_follows();
    }
  });
}

void Connection::listen(Channel::Events events) {
  events_ = std::make_shared<Channel::Events>(std::move(events));
  if (ended_) {
    asio::post(loop_.context, [self = shared_from_this()] { self->close(*self->ended_); });
  } else if (!reading_) {
    read_more();
  }
}

void Connection::read_more() {
  reading_ = true;
  socket_.async_read_some(asio::buffer(chunk_), [self = shared_from_this()](asio::error_code error, std::size_t size) {
    if (self->ended_) return;
    if (error) return self->close(self->finishing_ ? "closed" : reason_of(error));
    if (!self->finishing_) {
      self->frames_.add({self->chunk_.data(), size});
      self->deliver_frames();
    }
    if (!self->ended_) self->read_more();
  });
}

void Connection::deliver_frames() {
  while (!ended_ && !finishing_) {
    auto frame = next_frame();
    const auto events = events_;  // abandon() inside the callback must not destroy what runs
    if (!frame || !events) return;
    events->on_frame(std::move(*frame));
  }
}

std::optional<std::string> Connection::next_frame() {
  try {
    return frames_.next();
  } catch (const RemoteError& error) {
    close(error.what());
    return std::nullopt;
  }
}

void Connection::finish() {
  if (ended_ || finishing_) return;
  finishing_ = true;
  if (writing_.empty()) say_that_nothing_follows();
}

void Connection::say_that_nothing_follows() {
  asio::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  if (!reading_) read_more();  // to see the peer's end
  auto timer = std::make_shared<asio::steady_timer>(loop_.context, kLastWait);
  timer->async_wait([timer, self = shared_from_this()](asio::error_code error) {
    if (!error) self->close("closed");
  });
}

void Connection::abandon() {
  events_ = nullptr;
  abandoned_ = true;
  if (ended_ || !finishing_) close("");
}

// Without a listener the end is kept for it.
void Connection::close(const std::string& reason) {
  const auto self = shared_from_this();
  if (!ended_) {
    ended_ = reason;
    asio::error_code ignored;
    socket_.close(ignored);
  }
  const auto events = std::exchange(events_, nullptr);
  if (events || abandoned_) loop_.connections.erase(self);
  if (events && events->on_close) events->on_close(*ended_);
}

namespace {

// What callers hold. The connection itself is the loop's.
class Handle final : public Channel {
 public:
  Handle(const std::shared_ptr<Connection>& connection, std::string local, std::string peer)
      : connection_(connection), local_(std::move(local)), peer_(std::move(peer)) {}
  ~Handle() override {
    if (auto open = connection_.lock()) open->on_loop([](Connection& self) { self.abandon(); });
  }
  void listen(Events events) override {
    if (auto open = connection_.lock()) open->on_loop([events](Connection& self) { self.listen(events); });
  }
  void send(std::string frame) override {
    if (auto open = connection_.lock()) open->send(std::move(frame));
  }
  void close_after_sending() override {
    if (auto open = connection_.lock()) open->on_loop([](Connection& self) { self.finish(); });
  }
  std::size_t unsent() const override {
    const auto open = connection_.lock();
    return open ? open->unsent() : 0;
  }
  std::string local_address() const override { return local_; }
  std::string peer_address() const override { return peer_; }

 private:
  std::weak_ptr<Connection> connection_;
  std::string local_, peer_;
};

}  // namespace

std::shared_ptr<Channel> make_channel(Loop::State& loop, FileDescriptor socket) {
  prepare_control_socket(socket.get());
  const std::string local = local_name(socket.get()).address, peer = peer_name(socket.get()).address;
  int family = AF_UNIX;
  socklen_t size = sizeof family;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &size);
  Connection::Socket served(loop.context);
  asio::error_code error;
  served.assign(asio::generic::stream_protocol(family, 0), socket.get(), error);
  if (error) throw Error("cannot serve a connection: " + error.message());
  socket.release();
  auto connection = std::make_shared<Connection>(loop, std::move(served));
  connection->on_loop([](Connection& self) { self.keep(); });
  return std::make_shared<Handle>(connection, local, peer);
}

}  // namespace dtrain::net
