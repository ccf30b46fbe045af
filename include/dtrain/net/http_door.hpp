// A small HTTP server for machines that have nothing of dtrain yet, only curl: it gives files away and takes short
// messages. One request a connection; what is not such a request is closed without a word.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/net/channel.hpp>

namespace dtrain::net {

struct DoorRequest {
  std::string method, path;  // "GET", "/bundle/…": as they were sent
  std::string body;          // at most 64 KiB
  std::string peer;          // numeric address
};
struct DoorAnswer {
  int status = 200;
  std::string body{};
  Path file{};  // sent in place of the body, unless empty
};

// `answer` is called on the loop's thread and must not block. Throws Error when the port cannot be had. A peer that
// does nothing for 30 s is closed, and those beyond 256 wait.
class HttpDoor {
 public:
  HttpDoor(Loop& loop, const std::string& bind_address, std::uint16_t port,
           std::function<DoorAnswer(const DoorRequest&)> answer);
  ~HttpDoor();
  HttpDoor(const HttpDoor&) = delete;
  std::uint16_t port() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dtrain::net
