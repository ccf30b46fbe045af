// What the same bits in every run cost on a GPU: steps as they were asked for, and with --deterministic the other way.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench_run.hpp"

namespace dtrain::bench {

struct DeterminismCost {
  double seconds_on = 0, seconds_off = 0;  // of a step with --deterministic on and off
  int turns = 0;
  std::string unknown;  // why it was not measured; then all else is 0

  double ratio() const { return seconds_off > 0 ? seconds_on / seconds_off : 0; }
};

using TimeSteps = std::function<StepTimes(backend::Executable& executable, const BenchLength& length)>;

// The two take turns, each a part of `length`, so that both meet the GPU as warm and as busy. `asked` is deterministic
// or not as said, `make_other` makes the other one; that it cannot, as where memory does not hold both, is an answer.
DeterminismCost cost_of_determinism(bool deterministic, backend::Executable& asked,
                                    const std::function<std::unique_ptr<backend::Executable>()>& make_other,
                                    const BenchLength& length, const TimeSteps& time);

}  // namespace dtrain::bench
