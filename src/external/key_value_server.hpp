// The rendezvous of Horovod's Gloo ranks: a small HTTP server of values under /SCOPE/KEY. PUT stores, GET answers 404
// until the value is stored, DELETE forgets a key and accepts an unknown one. Like horovodrun's own server it has no
// authentication: it holds addresses only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <dtrain/net/http_server.hpp>
#include <dtrain/net/loop_thread.hpp>

namespace dtrain::external {

// The values and the answers about them. Pure, so that tests need no socket.
class KeyValues {
 public:
  net::HttpResponse answer(const net::HttpRequest& request);

 private:
  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;
};

// Listens on a free port of this address, and answers in a thread of its own until it is destroyed. A connection may
// carry many requests, and be idle for any time.
class KeyValueServer {
 public:
  explicit KeyValueServer(const std::string& address);  // throws Error
  std::uint16_t port() const { return server_.port(); }

 private:
  KeyValues values_;  // of the loop's thread
  net::LoopThread loop_;
  net::HttpServer server_;
};

}  // namespace dtrain::external
