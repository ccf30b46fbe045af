#include <dtrain/base/output_lines.hpp>

#include <utility>

namespace dtrain {

std::string OutputLines::add(std::string_view bytes, Time now) {
  rest_ += bytes;
  std::string lines;
  if (rest_.find('\r') != rest_.npos) {
    lines = take_states(now);
  } else if (const auto end = rest_.rfind('\n'); end != rest_.npos) {
    lines = rest_.substr(0, end + 1);
    rest_.erase(0, end + 1);
  }
  if (rest_.size() >= kLongest) lines += std::exchange(rest_, {}) + '\n';
  return lines;
}

// What follows carriage returns says whether they end a line or a state of it.
std::string OutputLines::take_states(Time now) {
  std::string lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = rest_.find_first_of("\r\n", begin)) != rest_.npos;) {
    const std::size_t next = rest_.find_first_not_of('\r', end);
    if (next == rest_.npos) break;
    const bool is_line = rest_[next] == '\n';
    const bool is_shown_state = !is_line && end > begin && now >= next_state_;
    if (is_shown_state) next_state_ = now + kRedrawInterval;
    if (is_line || is_shown_state) lines.append(rest_, begin, end - begin) += '\n';
    begin = is_line ? next + 1 : next;
  }
  rest_.erase(0, begin);
  return lines;
}

std::string OutputLines::end() {
  while (rest_.ends_with('\r')) rest_.pop_back();
  const std::string last = std::exchange(rest_, {});
  return last.empty() ? last : last.substr(last.rfind('\r') + 1) + '\n';
}

}  // namespace dtrain
