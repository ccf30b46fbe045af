#include "http_heads.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

std::pair<std::string, std::string> parse_header(std::string_view line) {
  const auto colon = line.find(':');
  if (colon == line.npos) return {};
  return {lower_case(trim(line.substr(0, colon))), std::string(trim(line.substr(colon + 1)))};
}

// What a header "Connection" says; `otherwise` where it does not say it.
bool stays_after(std::string_view words, bool otherwise) {
  for (const std::string& word : split(lower_case(words), ',')) {
    if (trim(word) == "close") return false;
    if (trim(word) == "keep-alive") otherwise = true;
  }
  return otherwise;
}

constexpr int kFirstRefusal = 400;  // of the statuses
constexpr std::pair<int, const char*> kReasons[] = {{200, "OK"},
                                                    {303, "See Other"},
                                                    {400, "Bad Request"},
                                                    {401, "Unauthorized"},
                                                    {403, "Forbidden"},
                                                    {404, "Not Found"},
                                                    {405, "Method Not Allowed"},
                                                    {413, "Payload Too Large"},
                                                    {429, "Too Many Requests"}};

const char* reason_of(int status) {
  const auto* const found = std::ranges::find(kReasons, status, &std::pair<int, const char*>::first);
  return found == std::end(kReasons) ? "Error" : found->second;
}

}  // namespace

std::optional<RequestHead> parse_request_head(std::string_view text, std::size_t most_body) {
  const std::vector<std::string> lines = split(text, '\n');
  const std::vector<std::string> words = split(trim(lines.front()), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) return std::nullopt;
  RequestHead head{.method = words[0], .path = words[1], .stays = words[2] != "HTTP/1.0"};
  for (const std::string& line : lines) {
    auto header = parse_header(line);
    if (header.first.empty()) continue;
    if (header.first == "content-length") {
      const auto length = parse_integer(header.second);
      if (!length || *length < 0 || static_cast<std::size_t>(*length) > most_body) return std::nullopt;
      head.body = static_cast<std::size_t>(*length);
    }
    if (header.first == "connection") head.stays = stays_after(header.second, head.stays);
    head.headers.push_back(std::move(header));
  }
  return head;
}

bool is_refusal(const HttpResponse& answer) { return answer.last || answer.status >= kFirstRefusal; }

std::string head_of(const HttpResponse& answer, const std::optional<std::uint64_t>& size, bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: {}\r\n", answer.status,
                                 reason_of(answer.status), answer.type, keep_alive ? "keep-alive" : "close");
  if (size) head += fmt::format("Content-Length: {}\r\n", *size);
  for (const auto& [name, value] : answer.headers) head += fmt::format("{}: {}\r\n", name, value);
  return head + "\r\n";
}

}  // namespace dtrain::net
