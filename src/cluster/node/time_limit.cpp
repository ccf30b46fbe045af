#include "time_limit.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace dtrain::cluster {
namespace {

constexpr std::chrono::minutes kUntilNextTry{1};
constexpr const char* kEndFile = "ends";  // node_boot.sh writes it

std::optional<double> seconds_in(const Path& file) {
  std::ifstream stream(file);
  double seconds = 0;
  return stream >> seconds ? std::optional(seconds) : std::nullopt;
}

}  // namespace

std::optional<std::chrono::seconds> time_left(const Path& folder, const Path& root) {
  const auto end = seconds_in(folder / kEndFile), up = seconds_in(root / "proc/uptime");
  if (!end || !up) return std::nullopt;
  return std::chrono::seconds(static_cast<std::int64_t>(std::max(0.0, std::ceil(*end - *up))));
}

void TimeLimit::hear(std::chrono::seconds left, Clock::time_point now) {
  end_ = end_ ? std::min(*end_, now + left) : now + left;
}

bool TimeLimit::take_end(Clock::time_point now) {
  if (!end_ || now < *end_) return false;
  end_ = now + kUntilNextTry;
  return true;
}

}  // namespace dtrain::cluster
