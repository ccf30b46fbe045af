// Time that a worker has spent in its phase, and in its last step with and without waiting for others.
#pragma once

#include <chrono>

#include <dtrain/elastic/membership.hpp>

namespace dtrain::elastic {

class PhaseClock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  explicit PhaseClock(Time now) : since_(now), waits_since_(now) {}

  // Also for the same phase: each call is a sign of progress.
  void enter(Phase phase, Time now);
  // A step was applied. The first one after start_steps() is not measured, because its beginning is unknown. Nor is one
  // in which nothing was computed: the end of an epoch is applied too, within microseconds, and is no step to compare.
  void step_done(Time now);
  void start_steps() { has_step_begin_ = false; }

  Phase phase() const { return phase_; }
  // A worker that holds its state after a lost collective counts from where it began to wait for the others: a
  // coordinator that takes over takes the beginning of the pause from here.
  double seconds_in_phase(Time now) const;
  double step_seconds() const { return step_.count(); }
  double compute_seconds() const { return compute_.count(); }

 private:
  Phase phase_ = Phase::building;
  Time since_;
  Time waits_since_;  // beginning of the last phases in a row that wait for others
  bool has_step_begin_ = false;
  Time step_begin_;
  bool worked_ = false;  // something was loaded, computed or reduced since step_begin_
  Seconds waiting_{};    // for others, in this step
  Seconds elsewhere_{};  // in evaluation and the like, since the last step
  Seconds step_{}, compute_{};
};

}  // namespace dtrain::elastic
