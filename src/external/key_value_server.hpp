// The rendezvous of Horovod's Gloo ranks: a small HTTP server of values under /SECRET:PORT/SCOPE/KEY. PUT stores, GET
// answers 404 until the value is stored, DELETE forgets a key and accepts an unknown one. Horovod builds an address as
// http://ADDR:PORT/SCOPE/KEY from two variables, so ADDR carries the first part of the path. A connection that asks for
// a path without the secret is closed before its body is read.
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

// Listens on a free port of this address for `ranks` ranks, and answers in a thread of its own until it is destroyed. A
// connection may carry many requests; one that is idle or does not read is closed after a deadline.
class KeyValueServer {
 public:
  KeyValueServer(const std::string& address, int ranks);  // throws Error
  std::uint16_t port() const { return server_.port(); }
  const std::string& secret() const { return secret_; }

 private:
  const std::string secret_;
  KeyValues values_;  // of the loop's thread
  net::LoopThread loop_;
  net::HttpServer server_;
};

}  // namespace dtrain::external
