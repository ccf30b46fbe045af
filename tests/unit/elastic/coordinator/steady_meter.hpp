// The meter of a job that makes a step of 100 samples a second.
#pragma once

#include "records/job_meter.hpp"

namespace dtrain::elastic {

constexpr Time kSteadyBegin{std::chrono::hours(1)};

// After the first five seconds of this generation.
inline JobMeter steady_meter(Generation generation) {
  JobMeter meter;
  for (std::uint64_t second = 1; second <= 5; ++second) {
    meter.heard({.generation = generation,
                 .phase = Phase::computing,
                 .position = {.has_state = true, .epoch = 0, .step = second, .samples_seen = 100 * second},
                 .step_seconds = 1},
                kSteadyBegin + second * std::chrono::seconds(1));
  }
  return meter;
}

}  // namespace dtrain::elastic
