// The heads of requests and responses of HTTP/1, as texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/net/http_server.hpp>

namespace dtrain::net {

struct RequestHead {
  std::string method, path;  // as they were sent
  std::size_t body = 0;      // bytes that follow
  bool stays = true;         // the client has nothing against another request by this connection
  std::vector<std::pair<std::string, std::string>> headers{};  // names in lower case
};

// Reads the lines of `text` up to the blank one. nullopt for what is no request of HTTP/1, or has a longer body.
std::optional<RequestHead> parse_request_head(std::string_view text, std::size_t most_body);

// The connection of such a response ends with it.
bool is_refusal(const HttpResponse& answer);

// `size`: bytes of the body, where they are known.
std::string head_of(const HttpResponse& answer, const std::optional<std::uint64_t>& size, bool keep_alive);

}  // namespace dtrain::net
