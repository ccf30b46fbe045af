// How long a worker has been in its phase, and what its last step took with and without waiting for others.
#pragma once

#include <chrono>

#include <dtrain/elastic/membership.hpp>

namespace dtrain::elastic {

class PhaseClock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  explicit PhaseClock(Time now) : since_(now) {}

  // Also when it is the same phase: each call is a sign of progress.
  void enter(Phase phase, Time now);
  // A step ended. The first one after start_steps() has no beginning, so it counts for nothing.
  void step_done(Time now);
  void start_steps() { has_step_begin_ = false; }

  Phase phase() const { return phase_; }
  double seconds_in_phase(Time now) const { return Seconds(now - since_).count(); }
  double step_seconds() const { return step_.count(); }
  double compute_seconds() const { return compute_.count(); }

 private:
  Phase phase_ = Phase::building;
  Time since_;
  bool has_step_begin_ = false;
  Time step_begin_;
  Seconds waiting_{};    // for others, in this step
  Seconds elsewhere_{};  // evaluating and the like, between the step before and this one
  Seconds step_{}, compute_{};
};

}  // namespace dtrain::elastic
