#include "login_text.hpp"

#include <algorithm>
#include <utility>

#include <dtrain/base/text.hpp>

namespace dtrain::net::ssh {
namespace {

constexpr std::size_t kMostLoginText = 200;  // bytes shown in a message

}  // namespace

std::string on_one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return c < ' ' || c > '~'; }, ' ');
  return std::string(trim(line));
}

std::string LoginText::take(std::string_view piece) {
  if (over_) return std::string(piece);
  shown_ += piece.substr(0, kMostLoginText - shown_.size());
  held_ += piece;
  const std::string mark = std::string(kOutputMark) + '\n';
  if (const std::size_t at = held_.find(mark); at != std::string::npos) {
    over_ = true;
    return std::exchange(held_, {}).substr(at + mark.size());
  }
  if (held_.size() >= mark.size()) held_.erase(0, held_.size() - mark.size() + 1);
  return {};
}

std::string LoginText::first_line() const {
  const std::string_view text = trim(shown_);
  return on_one_line(text.substr(0, text.find('\n')));
}

}  // namespace dtrain::net::ssh
