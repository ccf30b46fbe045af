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
    exhausted,  // a wrong one, and too many others came from this address lately
    stranger,   // a page of another site asks in the name of this user
  };

  // An empty token: everybody who reaches the port may enter, which must be one of this machine alone. `address`: where
  // the board listens. `open_word`: see open_with().
  Gate(std::string token, std::uint16_t port, std::string address = "127.0.0.1", std::string open_word = {})
      : token_(std::move(token)), port_(port), address_(std::move(address)), open_word_(std::move(open_word)) {}

  Verdict judge(const net::HttpRequest& request, const Target& target, Time now);
  const std::string& token() const { return token_; }
  std::string cookie() const;  // for Set-Cookie
  // The word stands in the arguments of the browser that this user's board opens, where all users of the machine read
  // it. So it opens the page once, and the caller asks only for connections of this user. true: as Verdict::remember.
  bool open_with(const std::string& word);
  const std::string& open_word() const { return open_word_; }

 private:
  bool knows(const std::string& word) const;
  bool is_own_host(std::string_view host) const;
  std::string cookie_name() const;

  const std::string token_;
  const std::uint16_t port_;
  const std::string address_, open_word_;
  bool was_opened_ = false;                        // by the word
  std::map<std::string, std::deque<Time>> wrong_;  // tries by address
};

}  // namespace dtrain::board
