#include "tail.hpp"

#include <algorithm>

namespace dtrain::board {
namespace {

constexpr std::uint64_t kPiece = 1 << 20;
constexpr std::size_t kHead = 64, kLongestLine = 4 << 20;

}  // namespace

Tail::News Tail::next(Files& files) {
  News news;
  const std::uint64_t size = files.size(path_).value_or(0);
  if (size == at_) return news;
  if (size < at_ || is_another(files)) {
    begin_again();
    news.restarted = true;
  }
  const std::string bytes = files.read(path_, at_, kPiece);
  if (at_ == 0) head_ = bytes.substr(0, kHead);
  at_ += bytes.size();
  news.more = bytes.size() == kPiece;
  rest_ += bytes;
  const std::size_t end = rest_.rfind('\n');
  if (end == rest_.npos) {
    if (rest_.size() > kLongestLine) rest_.clear();
    return news;
  }
  news.lines = rest_.substr(0, end + 1);
  rest_.erase(0, end + 1);
  return news;
}

bool Tail::is_another(Files& files) { return !head_.empty() && files.read(path_, 0, head_.size()) != head_; }

void Tail::begin_again() {
  at_ = 0;
  head_.clear();
  rest_.clear();
}

}  // namespace dtrain::board
