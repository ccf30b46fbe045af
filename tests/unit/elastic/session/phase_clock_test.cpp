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
  double seconds_in_phase() const { return clock.seconds_in_phase(now_); }
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

// A coordinator that took over while the members held their state counted the pause from the end of the collective.
TEST(PhaseClock, AHoldBeginsWhereTheWaitForALostMemberBegan) {
  TestClock test;
  test.step(10, 5);
  test.spend(Phase::computing, 10);
  test.spend(Phase::reducing, 3000);
  test.spend(Phase::holding, 500);
  EXPECT_NEAR(test.seconds_in_phase(), 3.5, 1e-9);
  test.spend(Phase::entering, 200);
  EXPECT_NEAR(test.seconds_in_phase(), 0.2, 1e-9);
  test.spend(Phase::holding, 100);
  EXPECT_NEAR(test.seconds_in_phase(), 3.8, 1e-9) << "the next generation was lost before a step";
  test.spend(Phase::entering, 100);
  test.spend(Phase::computing, 10);
  test.spend(Phase::reducing, 5);
  test.step_done();
  test.spend(Phase::holding, 40);
  EXPECT_NEAR(test.seconds_in_phase(), 0.04, 1e-9);
}

}  // namespace
}  // namespace dtrain::elastic
