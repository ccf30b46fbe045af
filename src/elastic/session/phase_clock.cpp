#include "phase_clock.hpp"

namespace dtrain::elastic {
namespace {

bool belongs_to_steps(Phase phase) {
  return phase == Phase::loading || phase == Phase::computing || phase == Phase::reducing || phase == Phase::applying;
}

}  // namespace

void PhaseClock::enter(Phase phase, Time now) {
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

}  // namespace dtrain::elastic
