#include "pause.hpp"

#include <algorithm>
#include <thread>

#include <dtrain/base/secret.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

using std::chrono::milliseconds;

// In [0, 1).
double random_part() {
  const std::string bytes = unpredictable_bytes(2);
  return (static_cast<unsigned char>(bytes[0]) * 256 + static_cast<unsigned char>(bytes[1])) / 65536.0;
}

milliseconds wanted_by(const AwsAnswer& answer) {
  if (const auto wait = parse_integer(answer.header("x-amz-retry-after"))) return milliseconds(*wait);
  if (const auto wait = parse_integer(answer.header("retry-after"))) return std::chrono::seconds(*wait);
  return milliseconds(0);
}

}  // namespace

milliseconds pause_after(int failed, AwsProblem problem, const AwsAnswer& answer, const AwsLimits& limits) {
  if (problem != AwsProblem::throttled && problem != AwsProblem::transient) return milliseconds(0);
  const milliseconds grown = std::min(limits.first_pause * (1 << std::min(failed - 1, 16)), limits.longest_pause);
  const milliseconds own(static_cast<std::int64_t>(static_cast<double>(grown.count()) * random_part()));
  return std::min(std::max(own, wanted_by(answer)), limits.longest_pause);
}

void pause_between_tries(milliseconds pause, const AwsLimits& limits) {
  const auto end = std::chrono::steady_clock::now() + pause;
  while (!(limits.stop_on_signal && stop_signal()) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min(pause, milliseconds(20)));
  }
}

}  // namespace dtrain::net
