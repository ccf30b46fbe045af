#include <dtrain/net/http_request.hpp>

#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

constexpr std::string_view kLength = "content-length:";

}  // namespace

std::optional<HttpRequestHead> parse_request_head(std::string_view text, std::size_t most_body) {
  const std::vector<std::string> lines = split(text, '\n');
  const std::vector<std::string> words = split(trim(lines.front()), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) return std::nullopt;
  HttpRequestHead head{.method = words[0], .path = words[1]};
  for (const std::string& line : lines) {
    if (!starts_with_ignoring_case(line, kLength)) continue;
    const auto length = parse_integer(trim(std::string_view(line).substr(kLength.size())));
    if (!length || *length < 0 || static_cast<std::size_t>(*length) > most_body) return std::nullopt;
    head.body = static_cast<std::size_t>(*length);
  }
  return head;
}

const char* http_reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Payload Too Large";
    default:
      return "Error";
  }
}

}  // namespace dtrain::net
