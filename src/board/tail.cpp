#include "tail.hpp"

#include <utility>

namespace dtrain::board {
namespace {

constexpr std::uint64_t kNewsPiece = 1 << 20;
constexpr std::size_t kHead = 64, kMostOfLine = 4 << 20;

}  // namespace

Tail::News Tail::next(Files& files) {
  News news;
  const std::uint64_t size = files.size(path_).value_or(0);
  if (size == at_) {
    news.restarted = std::exchange(restarted_, false);
    return news;
  }
  if (size < at_ || is_another(files)) {
    begin_again();
    restarted_ = true;
  }
  const std::string bytes = files.read(path_, at_, kNewsPiece);  // may throw
  news.restarted = std::exchange(restarted_, false);
  if (at_ == 0) head_ = bytes.substr(0, kHead);
  at_ += bytes.size();
  news.more = bytes.size() == kNewsPiece;
  rest_ += bytes;
  const std::size_t end = rest_.rfind('\n');
  if (end == rest_.npos) {
    if (rest_.size() > kMostOfLine) rest_.clear();
    return news;
  }
  std::string rest = rest_.substr(end + 1);  // with no more room than it needs: there are many tails
  news.at = at_ - rest_.size();
  rest_.resize(end + 1);
  news.lines = std::exchange(rest_, std::move(rest));
  return news;
}

bool Tail::is_another(Files& files) { return !head_.empty() && files.read(path_, 0, head_.size()) != head_; }

void Tail::begin_again() {
  at_ = 0;
  head_.clear();
  rest_.clear();
}

}  // namespace dtrain::board
