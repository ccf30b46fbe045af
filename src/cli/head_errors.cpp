#include "head_errors.hpp"

#include <algorithm>
#include <utility>

namespace dtrain::cli {
namespace {

// Empty: the line is another one.
std::string_view process_in(std::string_view line) {
  if (!line.starts_with(kProcessWord)) return {};
  const std::string_view number = line.substr(kProcessWord.size());
  return std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }) ? number : std::string_view();
}

}  // namespace

std::string HeadErrors::take(std::string_view text) {
  if (!process_.empty()) return std::string(text);
  held_ += text;
  std::string shown;
  for (std::size_t end; process_.empty() && (end = held_.find('\n')) != held_.npos; held_.erase(0, end + 1)) {
    const std::string_view line = std::string_view(held_).substr(0, end);
    process_ = process_in(line);
    if (process_.empty()) shown.append(line).append("\n");
  }
  if (!process_.empty()) shown += std::exchange(held_, {});
  return shown;
}

std::string HeadErrors::end() { return std::exchange(held_, {}); }

}  // namespace dtrain::cli
