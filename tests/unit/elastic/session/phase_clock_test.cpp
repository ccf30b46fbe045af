#include "session/phase_clock.hpp"

#include <gtest/gtest.h>

namespace dtrain::elastic {
namespace {

using std::chrono::milliseconds;

class TestClock {
 public:
  void spend(Phase phase, int ms) {
    clock.enter(phase, now_);
    now_ += milliseconds(ms);
  }
  void step_done() {
    clock.enter(Phase::applying, now_);
    clock.step_done(now_);
  }
  void step(int compute_ms, int wait_ms) {
    spend(Phase::computing, compute_ms);
    spend(Phase::reducing, wait_ms);
    step_done();
  }

 private:
  PhaseClock::Time now_{};

 public:
  PhaseClock clock{now_};
};

TEST(PhaseClock, MeasuresAStepAndItsWaitFromTheSecondOneOn) {
  TestClock test;
  test.step(10, 5);
  EXPECT_EQ(test.clock.step_seconds(), 0);
  test.step(20, 5);
  EXPECT_NEAR(test.clock.step_seconds(), 0.025, 1e-9);
  EXPECT_NEAR(test.clock.compute_seconds(), 0.020, 1e-9);
}

TEST(PhaseClock, LeavesOutWhatIsNoStep) {
  TestClock test;
  test.step(10, 5);
  test.spend(Phase::evaluating, 1000);
  test.step(20, 5);
  EXPECT_NEAR(test.clock.step_seconds(), 0.025, 1e-9);
}

// A host list that was asked for right after an epoch showed steps of 0 s.
TEST(PhaseClock, TheEndOfAnEpochIsNoStep) {
  TestClock test;
  test.step(10, 5);
  test.step(20, 5);
  test.spend(Phase::evaluating, 1000);
  test.step_done();
  EXPECT_NEAR(test.clock.step_seconds(), 0.025, 1e-9);
  test.step(30, 0);
  EXPECT_NEAR(test.clock.step_seconds(), 0.030, 1e-9);
}

}  // namespace
}  // namespace dtrain::elastic
