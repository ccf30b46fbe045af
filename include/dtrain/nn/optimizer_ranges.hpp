// The ranges of the numbers of Optimizer and Schedule, for require_valid() and for the options that set them.
#pragma once

#include <dtrain/base/value_range.hpp>
#include <dtrain/nn/optimizer.hpp>

namespace dtrain::nn {

struct OptimizerRanges {
  ValueRange momentum = from_and_below(0, 1), weight_decay = from_and_below(0, 1);
  ValueRange rest_momentum = from_and_below(0, 1);
  ValueRange lr_factor{.low = 0, .high = Optimizer::kMostFactor, .low_is_out = true};
  ValueRange layer_decay{.low = 0, .high = 1, .low_is_out = true};
  ValueRange muon_steps = between(1, NewtonSchulz::kMostSteps);
  ValueRange clip = at_least(0), average = from_and_below(0, 1);
  ValueRange muon_coefficient = between(-NewtonSchulz::kMostCoefficient, NewtonSchulz::kMostCoefficient);
};
inline constexpr OptimizerRanges kOptimizerRanges;

struct ScheduleRanges {
  ValueRange base = more_than(0), factor = more_than(0), warmup_epochs = at_least(0);
  ValueRange warmup_start = at_least(0);
  ValueRange final_share = between(0, 1), rise_share = from_and_below(0, 1);
  ValueRange cycles = between(1, 1000), power{.low = 0, .high = 20, .low_is_out = true};
};
inline constexpr ScheduleRanges kScheduleRanges;

}  // namespace dtrain::nn
