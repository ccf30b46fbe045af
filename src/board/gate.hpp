// Who may look at the board. Pure but for its memory of failed tries; the caller gives the times.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include <dtrain/net/http_server.hpp>

#include "target.hpp"

namespace dtrain::board {

class Gate {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Verdict {
    enter,
    remember,   // the token stood in the address: keep it in a cookie and send the browser to the plain address
    refused,    // no token, or a wrong one
    exhausted,  // too many wrong ones came from this address lately
    stranger,   // a page of another site asks in the name of this user
  };

  // An empty token: everybody who reaches the port may enter, which must be one of this machine alone.
  Gate(std::string token, std::uint16_t port) : token_(std::move(token)), port_(port) {}

  Verdict judge(const net::HttpRequest& request, const Target& target, Time now);
  const std::string& token() const { return token_; }
  std::string cookie() const;  // for Set-Cookie

 private:
  bool knows(const std::string& word) const;
  bool is_own_host(std::string_view host) const;
  std::string cookie_name() const;

  const std::string token_;
  const std::uint16_t port_;
  std::map<std::string, std::deque<Time>> wrong_;  // tries by address
};

}  // namespace dtrain::board
