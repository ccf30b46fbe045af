#include "bench_determinism.hpp"

#include <algorithm>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stats.hpp>

namespace dtrain::bench {
namespace {

constexpr int kTurns = 5;
constexpr int kMostWarmup = 5;  // the first turn loads and records; it is one of several turns

// At least one step, because 0 would mean as many as fit into the time.
BenchLength part_of(const BenchLength& length) {
  const int steps = length.steps > 0 ? std::max(1, length.steps / kTurns) : 0;
  return {.warmup = std::min(length.warmup, kMostWarmup), .steps = steps, .seconds = length.seconds / kTurns};
}

}  // namespace

DeterminismCost cost_of_determinism(bool deterministic, backend::Executable& asked,
                                    const std::function<std::unique_ptr<backend::Executable>()>& make_other,
                                    const BenchLength& length, const TimeSteps& time) {
  std::unique_ptr<backend::Executable> other;
  try {
    other = make_other();
  } catch (const Error& error) {
    return {.unknown = error.what()};
  }
  std::vector<double> asked_seconds, other_seconds;
  for (int turn = 0; turn < kTurns; ++turn) {
    asked_seconds.push_back(time(asked, part_of(length)).median());
    other_seconds.push_back(time(*other, part_of(length)).median());
  }
  const double mine = median(asked_seconds), others = median(other_seconds);
  return {.seconds_on = deterministic ? mine : others,
          .seconds_off = deterministic ? others : mine,
          .turns = kTurns,
          .unknown = {}};
}

}  // namespace dtrain::bench
