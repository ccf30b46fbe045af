#include "far_text.hpp"

#include <algorithm>

#include "printable.hpp"

namespace dtrain::cli {
namespace {

// `lines`: each with its newline.
std::string printable_lines(std::string_view lines) {
  std::string shown;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    shown += printable(lines.substr(0, end)) + '\n';
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return shown;
}

}  // namespace

std::string FarText::take(std::string_view bytes, OutputLines::Time now) {
  return on_terminal_ ? printable_lines(lines_.add(bytes, now)) : std::string(bytes);
}

std::string FarText::end() {
  std::string last = printable_lines(lines_.end());
  if (!last.empty()) last.pop_back();  // its end did not come
  return last;
}

}  // namespace dtrain::cli
