// Runs independent AWS calls in parallel.
#pragma once

#include <functional>
#include <vector>

#include <dtrain/base/parallel.hpp>

namespace dtrain::cluster {

// AWS services accept bursts of calls, and throttle more.
constexpr std::size_t kCallsAtOnce = 8;

// Runs all of them, a few at a time; then throws the first exception in their order.
inline void do_all(const std::vector<std::function<void()>>& calls) {
  try_each_in_parallel(calls.size(), kCallsAtOnce, [&](std::size_t i) { calls[i](); });
}

}  // namespace dtrain::cluster
