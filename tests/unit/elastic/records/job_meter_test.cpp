#include <gtest/gtest.h>

#include "records/job_meter.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

Progress at(Generation generation, std::uint64_t samples) {
  return {.generation = generation,
          .phase = Phase::computing,
          .position = {.has_state = true, .epoch = 0, .step = samples / 100, .samples_seen = samples},
          .seconds_in_phase = 0,
          .step_seconds = 1,
          .compute_seconds = 1};
}

TEST(JobMeter, TellsSamplesASecondOfTheLastTenSeconds) {
  JobMeter meter;
  const Time begin{1h};
  EXPECT_EQ(meter.samples_per_second(begin), 0);
  for (int second = 0; second <= 60; ++second) {
    meter.heard(at(1, 100 * (second < 30 ? second + 1 : 3 * second - 59)), begin + second * 1s);
  }
  EXPECT_DOUBLE_EQ(meter.samples_per_second(begin + 60s), 300);
  EXPECT_EQ(meter.samples_seen(), 12100u);
}

TEST(JobMeter, TheSpeedOfAJobThatStandsStillFalls) {
  JobMeter meter;
  const Time begin{1h};
  for (int second = 0; second <= 10; ++second) meter.heard(at(1, 100 * (second + 1)), begin + second * 1s);
  meter.heard(at(1, 1100), begin + 15s);
  EXPECT_DOUBLE_EQ(meter.samples_per_second(begin + 20s), 50);
}

TEST(JobMeter, TheSpeedIsZeroOnceNoStepWasMadeForLong) {
  JobMeter meter;
  const Time begin{1h};
  for (int second = 0; second <= 10; ++second) meter.heard(at(1, 100 * (second + 1)), begin + second * 1s);
  EXPECT_EQ(meter.samples_per_second(begin + 21s), 0);
}

TEST(JobMeter, StepsThatTakeLongerThanItsWindowHaveASpeed) {
  JobMeter meter;
  const Time begin{1h};
  for (int step = 0; step <= 4; ++step) meter.heard(at(1, 100 * (step + 1)), begin + step * 30s);
  EXPECT_GT(meter.samples_per_second(begin + 149s), 0);
}

TEST(JobMeter, GoesOnWithTheSumsOfAnEarlierCoordinator) {
  JobMeter meter;
  const Time until{1h};
  const WallTime wall{1000h};
  meter.resume({.first_step = wall - 100s, .paused = 50s}, until, wall);
  EXPECT_NEAR(meter.goodput(until).value(), 0.5, 1e-9);
  meter.heard(at(7, 700), until + 10s);  // a step took one of these ten seconds
  EXPECT_NEAR(meter.goodput(until + 10s).value(), 51.0 / 110, 1e-9);
}

TEST(JobMeter, ALaunchedProgramHasNoGoodputAfterATakeoverEither) {
  JobMeter meter;
  meter.resume({.first_step = WallTime{999h}, .is_of_program = true}, Time{1h}, WallTime{1000h});
  EXPECT_FALSE(meter.goodput(Time{1h}));
}

TEST(JobMeter, ASingleReportMeasuresNoGoodput) {
  JobMeter meter;
  const Time begin{1h};
  EXPECT_FALSE(meter.goodput(begin));
  meter.heard(at(1, 0), begin);  // as of a launched program
  meter.heard(at(1, 100), begin + 1s);
  meter.heard(at(1, 100), begin + 2s);
  EXPECT_FALSE(meter.goodput(begin + 3s));
  meter.heard(at(1, 300), begin + 3s);
  EXPECT_EQ(meter.goodput(begin + 3s), 1);
}

TEST(JobMeter, WaitsAtAChangeOfGenerationDoNotCountAsGood) {
  JobMeter meter;
  const Time begin{1h};
  for (int second = 0; second <= 5; ++second) meter.heard(at(1, 100 * (second + 1)), begin + second * 1s);
  EXPECT_DOUBLE_EQ(meter.goodput(begin + 5s).value(), 1);
  meter.heard(at(2, 700), begin + 10s);  // a step took one of these five seconds
  EXPECT_DOUBLE_EQ(meter.goodput(begin + 10s).value(), 0.6);
}

TEST(JobMeter, WhatWasLostIsSeenAgain) {
  JobMeter meter;
  const Time begin{1h};
  meter.heard(at(1, 100), begin);
  meter.heard(at(1, 900), begin + 8s);
  meter.heard(at(2, 100), begin + 20s);
  meter.heard(at(2, 200), begin + 21s);
  EXPECT_EQ(meter.samples_seen(), 200u);
  EXPECT_DOUBLE_EQ(meter.samples_per_second(begin + 21s), 100);
}

}  // namespace
}  // namespace dtrain::elastic
