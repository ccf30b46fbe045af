#include "key_value_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/net/http_request.hpp>

namespace dtrain::external {
namespace {

// Far more than a thousand ranks tell each other, and little enough that a stranger cannot fill the memory.
constexpr std::size_t kLongestHead = 16 << 10, kLongestBody = 1 << 20, kMostBytes = 64 << 20;
constexpr std::size_t kMostConnections = 4096;
constexpr int kSendSeconds = 5;  // to somebody who does not read

std::string text_of(const HttpAnswer& answer) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Length: {}\r\n\r\n{}", answer.status, net::http_reason(answer.status),
                     answer.body.size(), answer.body);
}

void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw RemoteError("the answer was not taken");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

HttpAnswer KeyValues::answer(const HttpRequest& request) {
  const auto found = values_.find(request.path);
  if (request.method == "GET") {
    return found == values_.end() ? HttpAnswer{.status = 404} : HttpAnswer{.body = found->second};
  }
  if (request.method == "DELETE") {
    if (found == values_.end()) return {};
    bytes_ -= found->second.size();
    values_.erase(found);
    return {};
  }
  if (request.method != "PUT") return {.status = 405};
  if (bytes_ + request.body.size() + request.path.size() > kMostBytes) return {.status = 413};
  std::string& value = values_[request.path];
  bytes_ += request.body.size() - value.size();
  value = request.body;
  return {};
}

std::size_t take_request(const std::string& bytes, HttpRequest& request) {
  const std::size_t head = bytes.find("\r\n\r\n");
  if (head == bytes.npos) {
    if (bytes.size() > kLongestHead) throw DataError("a request whose head does not end");
    return 0;
  }
  const auto known = net::parse_request_head(std::string_view(bytes).substr(0, head), kLongestBody);
  if (!known) throw DataError("no HTTP request, or one that is too long");
  const std::size_t whole = head + 4 + known->body;
  if (bytes.size() < whole) return 0;
  request = {known->method, known->path, bytes.substr(head + 4, known->body)};
  return whole;
}

KeyValueServer::KeyValueServer(const std::string& address) : place_(address), thread_([this] { serve(); }) {}

KeyValueServer::~KeyValueServer() {
  place_.end();
  thread_.join();
}

void KeyValueServer::serve() {
  while (true) {
    std::vector<pollfd> waits = {{place_.ended(), POLLIN, 0}, {place_.listener(), POLLIN, 0}};
    for (const Connection& connection : connections_) waits.push_back({connection.socket.get(), POLLIN, 0});
    ::poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) return;
    std::vector<Connection> kept;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (waits[i + 2].revents == 0 || hear(connections_[i])) kept.push_back(std::move(connections_[i]));
    }
    connections_ = std::move(kept);
    if (waits[1].revents != 0) accept_one();
  }
}

void KeyValueServer::accept_one() {
  const int socket = ::accept4(place_.listener(), nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  FileDescriptor owned(socket);
  if (connections_.size() >= kMostConnections) return;
  const timeval limit{kSendSeconds, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  connections_.push_back({std::move(owned), {}});
}

bool KeyValueServer::hear(Connection& connection) {
  char chunk[16 << 10];
  const ssize_t got = ::recv(connection.socket.get(), chunk, sizeof chunk, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  connection.received.append(chunk, static_cast<std::size_t>(got));
  try {
    HttpRequest request;
    while (const std::size_t taken = take_request(connection.received, request)) {
      connection.received.erase(0, taken);
      send_all(connection.socket.get(), text_of(values_.answer(request)));
    }
  } catch (const Error&) {  // no client of ours
    return false;
  }
  return true;
}

}  // namespace dtrain::external
