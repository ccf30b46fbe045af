// The rendezvous of Horovod's Gloo ranks: a small HTTP server of values under /SCOPE/KEY. PUT stores, GET answers 404
// until somebody has stored, DELETE forgets a key or, of a rank that is done, nothing. As horovodrun's own, it asks for
// no secret: what stands there are addresses.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/files.hpp>

#include "own_port.hpp"

namespace dtrain::external {

// What a request asks for and what comes back. Pure, so that tests need no socket.
struct HttpRequest {
  std::string method, path, body;
};
struct HttpAnswer {
  int status = 200;
  std::string body{};
};

class KeyValues {
 public:
  HttpAnswer answer(const HttpRequest& request);

 private:
  std::map<std::string, std::string> values_;
  std::size_t bytes_ = 0;
};

// Takes a whole request from the front of `bytes`: 0 while it is not all there, else how long it was. Throws DataError
// for what is no HTTP request, or is too long.
std::size_t take_request(const std::string& bytes, HttpRequest& request);

// Listens on a port of its own of this address, and answers in a thread until it is destroyed.
class KeyValueServer {
 public:
  explicit KeyValueServer(const std::string& address);  // throws Error
  ~KeyValueServer();
  KeyValueServer(const KeyValueServer&) = delete;
  std::uint16_t port() const { return place_.number(); }

 private:
  struct Connection {
    FileDescriptor socket;
    std::string received;
  };
  void serve();
  void accept_one();
  bool hear(Connection& connection);  // false: it is over

  OwnPort place_;
  KeyValues values_;
  std::vector<Connection> connections_;
  std::jthread thread_;
};

}  // namespace dtrain::external
