// What a small HTTP server has to know of a request's head, and of its answer's first line. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace dtrain::net {

struct HttpRequestHead {
  std::string method, path;  // as they were sent
  std::size_t body = 0;      // bytes that follow
};
// The lines of `text` up to the blank one. nullopt: no request of HTTP/1, or one whose body is longer than `most_body`.
std::optional<HttpRequestHead> parse_request_head(std::string_view text, std::size_t most_body);

// "Not Found" of 404.
const char* http_reason(int status);

}  // namespace dtrain::net
