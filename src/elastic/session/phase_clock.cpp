#include "phase_clock.hpp"

namespace dtrain::elastic {
namespace {

bool belongs_to_steps(Phase phase) {
  return phase == Phase::loading || phase == Phase::computing || phase == Phase::reducing || phase == Phase::applying;
}

bool is_wait(Phase phase) { return phase == Phase::reducing || phase == Phase::entering || phase == Phase::holding; }

}  // namespace

void PhaseClock::enter(Phase phase, Time now) {
  if (!is_wait(phase_)) waits_since_ = now;
  if (phase_ == Phase::reducing) waiting_ += now - since_;
  if (!belongs_to_steps(phase_)) elsewhere_ += now - since_;
  if (belongs_to_steps(phase) && phase != Phase::applying) worked_ = true;
  phase_ = phase;
  since_ = now;
}

void PhaseClock::step_done(Time now) {
  if (has_step_begin_ && worked_) {
    step_ = now - step_begin_ - elsewhere_;
    compute_ = step_ - waiting_;
  }
  has_step_begin_ = true;
  worked_ = false;
  step_begin_ = now;
  waiting_ = elsewhere_ = {};
}

double PhaseClock::seconds_in_phase(Time now) const {
  return Seconds(now - (phase_ == Phase::holding ? waits_since_ : since_)).count();
}

}  // namespace dtrain::elastic
