#include "far_text.hpp"

#include <utility>

#include "printable.hpp"

namespace dtrain::cli {

std::string FarText::take(std::string_view bytes, Time now) {
  if (!on_terminal_) return std::string(bytes);
  rest_ += bytes;
  std::string shown;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find_first_of("\r\n", begin)) != rest_.npos;) {
    // What follows carriage returns says whether they end a line or a state of it.
    const std::size_t next = rest_.find_first_not_of('\r', end);
    if (next == rest_.npos) break;
    const bool is_line = rest_[next] == '\n';
    const bool is_shown_state = !is_line && end > begin && now >= next_state_;
    if (is_shown_state) next_state_ = now + kRedrawInterval;
    if (is_line || is_shown_state) shown += printable(std::string_view(rest_).substr(begin, end - begin)) + '\n';
    begin = is_line ? next + 1 : next;
  }
  rest_.erase(0, begin);
  if (rest_.size() >= kLongest) shown += printable(std::exchange(rest_, {})) + '\n';
  return shown;
}

std::string FarText::end() {
  while (rest_.ends_with('\r')) rest_.pop_back();
  const std::string last = std::exchange(rest_, {});
  return printable(std::string_view(last).substr(last.rfind('\r') + 1));
}

}  // namespace dtrain::cli
