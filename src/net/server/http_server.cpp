#include <dtrain/net/http_server.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/connection_quota.hpp>

#include "http_heads.hpp"
#include "loop_state.hpp"

namespace dtrain::net {
namespace {

using asio::ip::tcp;
constexpr std::size_t kMostHead = 16 << 10, kPiece = 256 << 10, kMostUnread = 16 << 20;  // the last: of a stream
constexpr std::chrono::hours kNever{1 << 16};  // a connection that is being answered stays

bool has_secret(std::string_view path, const std::string& secret) {
  if (secret.empty()) return true;
  return path.starts_with('/') && equal_secrets(path.substr(1, secret.size()), secret);
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

// All of this runs on the loop's thread. A session and its pending handler on the loop keep each other alive until the
// peer, a deadline or close() ends it; the session's pointer to the state is weak, so that a server that is destroyed
// does not wait for its peers.
struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  class Session;
  State(Loop& chosen, Answer answering, const HttpServerOptions& limits)
      : loop(chosen),
        options(limits),
        acceptor(chosen.state().context),
        answer(std::move(answering)),
        quota({.most = limits.most_connections, .most_of_address = limits.most_of_address, .grace = kNever}) {}
  void accept_next();
  void take(tcp::socket socket);
  void leave(const std::shared_ptr<Session>& session);
  void close();

  Loop& loop;
  const HttpServerOptions options;
  tcp::acceptor acceptor;
  Answer answer;
  ConnectionQuota quota;
  std::uint64_t taken = 0;  // connections
  std::map<ConnectionQuota::Id, std::shared_ptr<Session>> sessions;
  bool accepting = false;
};

// One connection.
class HttpServer::State::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const std::shared_ptr<State>& server, std::uint64_t number, tcp::socket socket)
      : server_(server),
        options_(server->options),
        number_(number),
        timer_(socket.get_executor()),
        socket_(std::move(socket)) {}

  void serve() {
    limit(options_.read_deadline);
    asio::async_read_until(socket_, asio::dynamic_buffer(incoming_, kMostHead), "\r\n\r\n",
                           [self = shared_from_this()](asio::error_code error, std::size_t size) {
                             if (error) return self->end();
                             self->take_head(size);
                           });
  }

  void end() {
    timer_.cancel();
    asio::error_code ignored;
    socket_.close(ignored);
    if (stream_) stream_->open = false;
    if (const auto server = server_.lock()) server->leave(shared_from_this());
  }

 private:
  void limit(std::chrono::seconds time) {
    timer_.cancel();
    if (time == time.zero()) return;
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this()](asio::error_code error) {
      if (!error) self->end();
    });
  }

  std::string take(std::size_t size) {
    std::string text = incoming_.substr(0, size);
    incoming_.erase(0, size);
    return text;
  }

  void take_head(std::size_t size) {
    const auto head = parse_request_head(take(size), options_.most_body);
    if (!head || !has_secret(head->path, options_.path_secret)) return end();
    asio::error_code error;
    const auto peer = socket_.remote_endpoint(error);
    request_ = {.method = head->method,
                .path = head->path,
                .body = {},
                .peer = peer.address().to_string(),
                .peer_port = peer.port(),
                .connection = number_,
                .headers = head->headers};
    if (error) return end();
    stays_ = options_.keep_alive && head->stays;
    const std::size_t missing = head->body - std::min(head->body, incoming_.size());
    asio::async_read(socket_, asio::dynamic_buffer(incoming_), asio::transfer_exactly(missing),
                     [self = shared_from_this(), size = head->body](asio::error_code failed, std::size_t) {
                       if (failed) return self->end();
                       self->request_.body = self->take(size);
                       self->answer();
                     });
  }

  void answer() {
    const auto server = server_.lock();
    if (!server || !server->answer) return end();
    HttpResponse answer = server->answer(request_);
    // Who is refused stays a stranger. What comes later, and the secret of the path, are for guests.
    if (answer.later || !options_.path_secret.empty() || !is_refusal(answer))
      server->quota.spoke(this, std::chrono::steady_clock::now());
    respond(std::move(answer));
  }

  void respond(HttpResponse answer) {
    if (const auto later = std::exchange(answer.later, {})) {
      timer_.cancel();  // The server keeps the session: what is given away may outlive the loop.
      return later([session = weak_from_this(), executor = socket_.get_executor()](HttpResponse finished) {
        asio::post(executor, [session, finished = std::move(finished)]() mutable {
          if (const auto self = session.lock(); self && self->socket_.is_open()) self->respond(std::move(finished));
        });
      });
    }
    std::optional<std::uint64_t> size = answer.body.size();
    if (!answer.file.empty()) {
      file_.open(answer.file, std::ios::binary);
      std::error_code error;
      size = std::filesystem::file_size(answer.file, error);
      if (!file_ || error) answer = {.status = 404};
      if (answer.status == 404) size = 0;
    }
    open_ = std::move(answer.stream);
    if (open_) size.reset();
    stays_ = stays_ && size && !is_refusal(answer);
    outgoing_ = head_of(answer, size, stays_);
    if (request_.method == "HEAD") {
      open_ = nullptr;
      file_.close();
    } else {
      outgoing_ += answer.body;
    }
    send();
  }

  void send() {
    write([this] { send_more(); });
  }

  // Sends `outgoing_`, with a deadline for each piece of it, then calls `then`.
  void write(std::function<void()> then, std::size_t from = 0) {
    limit(options_.write_deadline);
    const std::size_t size = std::min(kPiece, outgoing_.size() - from);
    asio::async_write(socket_, asio::buffer(outgoing_.data() + from, size),
                      [self = shared_from_this(), then = std::move(then), next = from + size](asio::error_code error,
                                                                                              std::size_t) mutable {
                        if (error) return self->end();
                        if (next < self->outgoing_.size()) return self->write(std::move(then), next);
                        then();
                      });
  }

  void send_more() {
    if (open_) return begin_stream();
    outgoing_.resize(kPiece);
    if (file_.is_open()) file_.read(outgoing_.data(), static_cast<std::streamsize>(kPiece));
    outgoing_.resize(file_.is_open() ? static_cast<std::size_t>(file_.gcount()) : 0);
    if (!outgoing_.empty()) return send();
    if (!stays_) return end();
    if (file_.is_open()) file_.close();
    serve();
  }

  // What a caller of any thread holds: the session outlives it, and it outlives the session. Bytes wait here in the
  // order of the calls: a task that the loop's own thread posts may run after one that another thread posts later.
  struct Stream final : HttpStream {
    explicit Stream(const std::shared_ptr<Session>& session)
        : executor(session->socket_.get_executor()), session_(session) {}
    void send(std::string bytes) override {
      if (!open) return;
      {
        const MutexLock lock(mutex_);
        waiting_ += bytes;
      }
      asio::post(executor, [session = session_] {
        if (const auto self = session.lock()) self->add_to_stream();
      });
    }
    bool is_open() const override { return open; }
    std::string take() {
      const MutexLock lock(mutex_);
      return std::exchange(waiting_, {});
    }
    tcp::socket::executor_type executor;
    std::weak_ptr<Session> session_;
    std::atomic<bool> open{true};
    Mutex mutex_;
    std::string waiting_ DTRAIN_GUARDED_BY(mutex_);
  };

  void begin_stream() {
    timer_.cancel();
    outgoing_.clear();
    stream_ = std::make_shared<Stream>(shared_from_this());
    std::exchange(open_, {})(stream_);
    watch_for_end();
  }

  // The client has nothing more to say: what comes is its end.
  void watch_for_end() {
    socket_.async_read_some(asio::buffer(ignored_), [self = shared_from_this()](asio::error_code error, std::size_t) {
      if (error) return self->end();
      self->watch_for_end();
    });
  }

  void add_to_stream() {
    if (!stream_ || !stream_->open) return;
    unsent_ += stream_->take();
    if (unsent_.size() > kMostUnread) return end();
    if (outgoing_.empty() && !unsent_.empty()) write_stream();
  }

  void write_stream() {
    outgoing_ = std::exchange(unsent_, {});
    write([this] {
      timer_.cancel();
      outgoing_.clear();
      if (!unsent_.empty()) write_stream();
    });
  }

  std::weak_ptr<State> server_;
  const HttpServerOptions options_;
  const std::uint64_t number_;
  asio::steady_timer timer_;
  tcp::socket socket_;
  std::string incoming_;  // at most a head, and a body once the head is accepted
  HttpRequest request_;
  bool stays_ = false;  // for the next request, as far as is known
  std::ifstream file_;
  std::string outgoing_;
  std::function<void(std::shared_ptr<HttpStream>)> open_;  // set until the stream begins
  std::shared_ptr<Stream> stream_;
  std::string unsent_;  // of the stream, behind `outgoing_`
  std::array<char, 256> ignored_;
};

void HttpServer::State::accept_next() {
  if (accepting || !acceptor.is_open() || quota.is_full(std::chrono::steady_clock::now())) return;
  accepting = true;
  acceptor.async_accept([self = shared_from_this()](asio::error_code error, tcp::socket socket) {
    self->accepting = false;
    if (!self->acceptor.is_open()) return;
    if (error) {
      return self->loop.after(std::chrono::milliseconds(100), [self] { self->accept_next(); });
    }
    self->take(std::move(socket));
    self->accept_next();
  });
}

// A socket that is not taken closes with its object.
void HttpServer::State::take(tcp::socket socket) {
  asio::error_code error;
  const std::string address = socket.remote_endpoint(error).address().to_string();
  if (error) return;
  const auto session = std::make_shared<Session>(shared_from_this(), ++taken, std::move(socket));
  const auto decision = quota.add(session.get(), address, std::chrono::steady_clock::now());
  if (const auto displaced = sessions.find(decision.displaced); displaced != sessions.end()) {
    const auto goes = displaced->second;  // its end removes the entry
    goes->end();
  }
  if (!decision.admitted) return;
  sessions[session.get()] = session;
  session->serve();
}

void HttpServer::State::leave(const std::shared_ptr<Session>& session) {
  quota.remove(session.get());
  sessions.erase(session.get());
  accept_next();
}

void HttpServer::State::close() {
  asio::error_code ignored;
  acceptor.close(ignored);
  answer = nullptr;
  for (const auto& [id, session] : std::exchange(sessions, {})) session->end();
}

HttpServer::HttpServer(Loop& loop, const std::string& bind_address, std::uint16_t port, Answer answer,
                       const HttpServerOptions& options)
    : state_(std::make_shared<State>(loop, std::move(answer), options)) {
  asio::error_code error;
  const auto address = asio::ip::make_address(bind_address, error);
  const tcp::endpoint place(address, port);
  if (!error) state_->acceptor.open(place.protocol(), error);
  if (!error) state_->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) state_->acceptor.bind(place, error);
  if (!error) state_->acceptor.listen(asio::socket_base::max_listen_connections, error);
  const std::string why =
      error ? fmt::format("cannot listen on port {} of {}: {}", port, bind_address, error.message()) : std::string();
  if (error == asio::error::address_in_use) throw PortInUse(why);
  if (error == asio::error::access_denied) throw Error(why, "choose another port; those below 1024 need root");
  if (error) throw Error(why);
  loop.post([state = state_] { state->accept_next(); });
}

HttpServer::~HttpServer() {
  if (!state_->loop.state().ending) state_->loop.post([state = state_] { state->close(); });
}

std::uint16_t HttpServer::port() const {
  asio::error_code error;
  return state_->acceptor.local_endpoint(error).port();
}

}  // namespace dtrain::net
