#include <dtrain/net/http_door.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <set>
#include <utility>

#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http_request.hpp>

#include "loop_state.hpp"

namespace dtrain::net {
namespace {

using asio::ip::tcp;
constexpr std::chrono::seconds kPatience{30};
constexpr std::size_t kMostHead = 16 << 10, kMostBody = 64 << 10, kPiece = 256 << 10;
constexpr std::size_t kMostVisitors = 256;

}  // namespace

struct HttpDoor::State : std::enable_shared_from_this<HttpDoor::State> {
  class Visitor;
  State(Loop& chosen, std::function<DoorAnswer(const DoorRequest&)> answering)
      : loop(chosen), acceptor(chosen.state().context), answer(std::move(answering)) {}
  void accept_next();
  void leave(const std::shared_ptr<Visitor>& visitor);
  void close();

  Loop& loop;
  tcp::acceptor acceptor;
  std::function<DoorAnswer(const DoorRequest&)> answer;
  std::set<std::shared_ptr<Visitor>> visitors;
  bool accepting = false;
};

// One connection.
class HttpDoor::State::Visitor : public std::enable_shared_from_this<Visitor> {
 public:
  Visitor(std::weak_ptr<State> door, tcp::socket socket)
      : door_(std::move(door)),
        timer_(socket.get_executor()),
        socket_(std::move(socket)),
        incoming_(kMostHead + kMostBody) {}

  void serve() {
    wait();
    asio::async_read_until(socket_, incoming_, "\r\n\r\n",
                           [self = shared_from_this()](asio::error_code error, std::size_t size) {
                             if (error) return self->end();
                             self->take_head(size);
                           });
  }

  void end() {
    timer_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
    if (const auto door = door_.lock()) door->leave(shared_from_this());
  }

 private:
  void wait() {
    timer_.expires_after(kPatience);
    timer_.async_wait([self = shared_from_this()](asio::error_code error) {
      if (!error) self->end();
    });
  }

  std::string take(std::size_t size) {
    std::string text(asio::buffers_begin(incoming_.data()),
                     asio::buffers_begin(incoming_.data()) + static_cast<long>(size));
    incoming_.consume(size);
    return text;
  }

  void take_head(std::size_t size) {
    const auto head = parse_request_head(take(size), kMostBody);
    if (!head) return end();
    asio::error_code error;
    request_ = {.method = head->method,
                .path = head->path,
                .body = {},
                .peer = socket_.remote_endpoint(error).address().to_string()};
    if (error) return end();
    const std::size_t missing = head->body - std::min(head->body, incoming_.size());
    asio::async_read(socket_, incoming_, asio::transfer_exactly(missing),
                     [self = shared_from_this(), size = head->body](asio::error_code failed, std::size_t) {
                       if (failed) return self->end();
                       self->request_.body = self->take(size);
                       self->answer();
                     });
  }

  void answer() {
    const auto door = door_.lock();
    if (!door || !door->answer) return end();
    DoorAnswer answer = door->answer(request_);
    std::uint64_t size = answer.body.size();
    if (!answer.file.empty()) {
      file_.open(answer.file, std::ios::binary);
      std::error_code error;
      size = std::filesystem::file_size(answer.file, error);
      if (!file_ || error) answer = {.status = 404};
      if (answer.status == 404) size = 0;
    }
    outgoing_ = fmt::format(
        "HTTP/1.1 {} {}\r\nContent-Length: {}\r\nContent-Type: application/octet-stream\r\nConnection: close\r\n\r\n{}",
        answer.status, http_reason(answer.status), size, answer.body);
    send();
  }

  void send() {
    wait();
    asio::async_write(socket_, asio::buffer(outgoing_),
                      [self = shared_from_this()](asio::error_code error, std::size_t) {
                        if (error) return self->end();
                        self->send_more();
                      });
  }

  void send_more() {
    outgoing_.resize(kPiece);
    if (file_.is_open()) file_.read(outgoing_.data(), static_cast<std::streamsize>(kPiece));
    outgoing_.resize(file_.is_open() ? static_cast<std::size_t>(file_.gcount()) : 0);
    if (outgoing_.empty()) return end();
    send();
  }

  std::weak_ptr<State> door_;
  asio::steady_timer timer_;
  tcp::socket socket_;
  asio::streambuf incoming_;
  DoorRequest request_;
  std::ifstream file_;
  std::string outgoing_;
};

void HttpDoor::State::accept_next() {
  if (accepting || !acceptor.is_open() || visitors.size() >= kMostVisitors) return;
  accepting = true;
  acceptor.async_accept([self = shared_from_this()](asio::error_code error, tcp::socket socket) {
    self->accepting = false;
    if (!self->acceptor.is_open()) return;
    if (error) {
      return self->loop.after(std::chrono::milliseconds(100), [self] { self->accept_next(); });
    }
    const auto visitor = std::make_shared<Visitor>(self, std::move(socket));
    self->visitors.insert(visitor);
    visitor->serve();
    self->accept_next();
  });
}

void HttpDoor::State::leave(const std::shared_ptr<Visitor>& visitor) {
  visitors.erase(visitor);
  accept_next();
}

void HttpDoor::State::close() {
  asio::error_code ignored;
  acceptor.close(ignored);
  answer = nullptr;
  for (const auto& visitor : std::exchange(visitors, {})) visitor->end();
}

HttpDoor::HttpDoor(Loop& loop, const std::string& bind_address, std::uint16_t port,
                   std::function<DoorAnswer(const DoorRequest&)> answer)
    : state_(std::make_shared<State>(loop, std::move(answer))) {
  asio::error_code error;
  const auto address = asio::ip::make_address(bind_address, error);
  const tcp::endpoint place(address, port);
  if (!error) state_->acceptor.open(place.protocol(), error);
  if (!error) state_->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) state_->acceptor.bind(place, error);
  if (!error) state_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) throw Error(fmt::format("cannot listen on port {} of {}: {}", port, bind_address, error.message()));
  loop.post([state = state_] { state->accept_next(); });
}

HttpDoor::~HttpDoor() {
  if (!state_->loop.state().ending) state_->loop.post([state = state_] { state->close(); });
}

std::uint16_t HttpDoor::port() const {
  asio::error_code error;
  return state_->acceptor.local_endpoint(error).port();
}

}  // namespace dtrain::net
