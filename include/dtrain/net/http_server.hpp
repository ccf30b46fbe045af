// A small HTTP server for clients that are no part of dtrain, such as curl: it sends files and takes short messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::net {

struct HttpRequest {
  std::string method, path;  // "GET", "/bundle/…": as they were sent
  std::string body{};
  std::string peer{};  // numeric address
  std::uint16_t peer_port = 0;
  std::uint64_t connection = 0;  // counted from 1 by its server: no other connection of it has this number
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case
  std::string_view header(std::string_view name) const;        // the first of that name; empty: there is none
};

// The body of a response that grows as long as its client listens. Any thread.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Queued, in the order of the calls. A client that leaves too much unread is closed.
  virtual void send(std::string bytes) = 0;
  virtual bool is_open() const = 0;
};

struct HttpResponse {
  int status = 200;
  std::string body{};
  Path file{};  // sent in place of the body, unless empty
  std::string type = "application/octet-stream";
  std::vector<std::pair<std::string, std::string>> headers{};  // further ones; without line ends
  // Set: called in place of sending this response, which another one follows at any time, from any thread, once.
  using Reply = std::function<void(HttpResponse)>;
  std::function<void(Reply)> later{};
  // Set: called with the body once the head is sent. It ends with its client or the server.
  std::function<void(std::shared_ptr<HttpStream>)> stream{};
  // The connection closes after it, and may be closed for others until then, as after each status of 400 and above.
  bool last = false;
};

struct HttpServerOptions {
  std::size_t most_body = 64 << 10;  // bytes of a request's body
  // Where more come, connections that have sent no whole request, or none that was not refused, are closed first;
  // without such, newcomers wait in the listen queue, and those of an address that has too many are closed.
  std::size_t most_connections = 256;
  std::size_t most_of_address = most_connections;
  bool keep_alive = false;                  // serve the next request of a connection unless one was refused
  std::chrono::seconds read_deadline{30};   // for a whole request; 0: none
  std::chrono::seconds write_deadline{30};  // for each 256 KiB of a response
  // A connection whose request names a path that does not begin with / and this secret is closed before the body is
  // read. Empty: every path is served.
  std::string path_secret{};
};

// Another program listens on this port.
class PortInUse : public Error {
 public:
  using Error::Error;
};

// Calls `answer` on the loop's thread; it must not block. A connection that misses a deadline, sends no HTTP request or
// one whose head or body is too long is closed without a response. The loop must outlive the server; once the
// destructor's close has run on the loop, `answer` is not called any more. Throws PortInUse, or Error if the port
// cannot be bound for another reason.
class HttpServer {
 public:
  using Answer = std::function<HttpResponse(const HttpRequest&)>;
  // Port 0: any free one.
  HttpServer(Loop& loop, const std::string& bind_address, std::uint16_t port, Answer answer,
             const HttpServerOptions& options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  std::uint16_t port() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrain::net
