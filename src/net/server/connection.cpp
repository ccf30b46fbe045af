#include "connection.hpp"

#include <fmt/format.h>

#include <asio/steady_timer.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/net/socket_address.hpp>

#include "sockets.hpp"

namespace dtrain::net {
namespace {

// How long a peer may take to close after we said that nothing follows.
constexpr std::chrono::seconds kLastWait{2};

// One connection reads so much before others get their turn.
constexpr int kChunksPerTurn = 8;
constexpr std::size_t kFramesPerWrite = 16;

std::string reason_of(const Moved& moved) {
  if (moved.state == Moved::State::ended) return "the peer closed the connection";
  return "the connection broke: " + moved.error;
}

}  // namespace

Connection::Connection(Loop::State& loop, Stream stream)
    : loop_(loop), stream_(std::move(stream)), watch_(loop.context) {
  asio::error_code error;
  watch_.assign(stream_.socket(), error);
  if (error) throw Error("cannot serve a connection: " + error.message());
}

Connection::~Connection() {
  if (watch_.is_open()) watch_.release();
}

void Connection::send(std::string frame) {
  std::string trouble;
  if (frame.size() > kMaxFrame) trouble = fmt::format("a frame of {} bytes is too large to send", frame.size());
  std::string bytes = frame_header(frame.size()) + frame;
  if (unsent_.fetch_add(bytes.size()) + bytes.size() > kMaxUnsent) trouble = "the peer does not read what it is sent";
  if (loop_.ending) return;
  if (trouble.empty()) {
    on_loop([bytes = std::move(bytes)](Connection& self) mutable { self.queue(std::move(bytes)); });
  } else {
    close_later(trouble);
  }
}

// on_close must not run inside the caller's send().
void Connection::close_later(const std::string& reason) {
  asio::post(loop_.context, [self = shared_from_this(), reason] { self->close(reason); });
}

void Connection::queue(std::string bytes) {
  if (ended_ || finishing_) {
    unsent_ -= bytes.size();
    return;
  }
  queued_.push_back(std::move(bytes));
  if (!waiting_to_write_) write_queued();
}

void Connection::write_queued() {
  while (!queued_.empty() || stream_.unsent() > 0) {
    const Moved moved = write_some();
    if (moved.state == Moved::State::blocked) return wait_to_write();
    if (moved.state != Moved::State::open) return close_later(reason_of(moved));
  }
  if (finishing_) say_that_nothing_follows();
}

Moved Connection::write_some() {
  if (queued_.empty()) return stream_.flush();
  std::array<iovec, kFramesPerWrite> parts;
  const std::size_t count = std::min(queued_.size(), parts.size());
  for (std::size_t i = 0; i < count; ++i) parts[i] = {queued_[i].data(), queued_[i].size()};
  parts[0] = {queued_[0].data() + front_sent_, queued_[0].size() - front_sent_};
  Moved moved = stream_.write({parts.data(), count});
  unsent_ -= moved.bytes;
  front_sent_ += moved.bytes;
  for (; !queued_.empty() && front_sent_ >= queued_.front().size(); queued_.pop_front()) {
    front_sent_ -= queued_.front().size();
  }
  return moved;
}

void Connection::wait_to_write() {
  waiting_to_write_ = true;
  watch_.async_wait(watch_.wait_write, [self = shared_from_this()](asio::error_code error) {
    self->waiting_to_write_ = false;
    if (!self->ended_ && !error) self->write_queued();
  });
}

void Connection::listen(Channel::Events events) {
  events_ = std::make_shared<Channel::Events>(std::move(events));
  if (ended_) {
    asio::post(loop_.context, [self = shared_from_this()] { self->close(*self->ended_); });
  } else if (!reading_) {
    wait_to_read();
  }
}

void Connection::wait_to_read() {
  reading_ = true;
  watch_.async_wait(watch_.wait_read, [self = shared_from_this()](asio::error_code error) {
    if (!self->ended_ && !error) self->read_some();
  });
}

void Connection::read_some() {
  for (int chunk = 0; chunk < kChunksPerTurn; ++chunk) {
    const iovec part{chunk_.data(), chunk_.size()};
    const Moved moved = stream_.read({&part, 1});
    if (moved.bytes > 0 && !finishing_) {
      frames_.add({chunk_.data(), moved.bytes});
      deliver_frames();
    }
    if (ended_) return;
    if (moved.state == Moved::State::blocked) return wait_to_read();
    if (moved.state != Moved::State::open) return close(finishing_ ? "closed" : reason_of(moved));
  }
  asio::post(loop_.context, [self = shared_from_this()] {
    if (!self->ended_) self->read_some();
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
  if (!waiting_to_write_) write_queued();
}

void Connection::say_that_nothing_follows() {
  stream_.end_writing();
  if (!reading_) wait_to_read();  // to see the peer's end
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
    watch_.release();
    stream_ = Stream();
  }
  const auto events = std::exchange(events_, nullptr);
  if (events || abandoned_) loop_.connections.erase(self);
  if (events && events->on_close) events->on_close(*ended_);
}

namespace {

// What callers hold. The connection itself is the loop's.
class Handle final : public Channel {
 public:
  Handle(const std::shared_ptr<Connection>& connection, const SocketAddress& own, const SocketAddress& peer)
      : connection_(connection), own_(own), peer_(peer) {}
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
  std::string local_address() const override { return own_.address(); }
  std::string peer_address() const override { return peer_.address(); }
  std::uint16_t peer_port() const override { return peer_.port(); }

 private:
  std::weak_ptr<Connection> connection_;
  const SocketAddress own_, peer_;
};

}  // namespace

std::shared_ptr<Channel> make_channel(Loop::State& loop, Stream stream) {
  prepare_control_socket(stream.socket());
  const auto own = SocketAddress::own_of(stream.socket()), peer = SocketAddress::peer_of(stream.socket());
  auto connection = std::make_shared<Connection>(loop, std::move(stream));
  connection->on_loop([](Connection& self) { self.keep(); });
  return std::make_shared<Handle>(connection, own, peer);
}

}  // namespace dtrain::net
