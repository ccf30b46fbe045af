// Responses to the page.
#pragma once

#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/net/http_server.hpp>

namespace dtrain::board {

inline constexpr const char *kJsonType = "application/json", *kPngType = "image/png", *kSvgType = "image/svg+xml";

inline net::HttpResponse reply(std::string body, std::string type) {
  return {.body = std::move(body), .type = std::move(type)};
}
inline net::HttpResponse reply(const Json& json) { return reply(json.dump(), kJsonType); }
inline net::HttpResponse refuse(int status, const std::string& what, const std::string& hint = {}) {
  return {.status = status, .body = Json::object({{"error", what}, {"hint", hint}}).dump(), .type = kJsonType};
}

// What the page asks for is not there; a 404.
class Missing : public Error {
 public:
  using Error::Error;
};

}  // namespace dtrain::board
