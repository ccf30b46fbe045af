// The cost of reproducible bits on a GPU: steps as requested, compared with steps under the other --deterministic.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench_run.hpp"

namespace dtrain::bench {

struct DeterminismCost {
  double seconds_on = 0, seconds_off = 0;  // per step, with --deterministic on and off
  int turns = 0;
  std::string unknown;  // reason why it was not measured; all else is 0 then

  double ratio() const { return seconds_off > 0 ? seconds_on / seconds_off : 0; }
};

using TimeSteps = std::function<StepTimes(backend::Executable& executable, const BenchLength& length)>;

// Both executables take turns, each for a part of `length`, so that the GPU is equally warm and busy. `asked` is
// deterministic or not as given; `make_other` makes the other one. If that fails, for instance for lack of memory, the
// reason is the result.
DeterminismCost cost_of_determinism(bool deterministic, backend::Executable& asked,
                                    const std::function<std::unique_ptr<backend::Executable>()>& make_other,
                                    const BenchLength& length, const TimeSteps& time);

}  // namespace dtrain::bench
