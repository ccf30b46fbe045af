#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/optimizer.hpp>

namespace dtrain::nn {
namespace {

constexpr std::uint64_t kEpoch = 50000;

TEST(Schedule, StepsMultiplyFromTheFirstSampleOfTheirEpoch) {
  const Schedule schedule{.base = 0.05, .factor = 0.1, .boundaries = {200, 250}};
  EXPECT_EQ(schedule.rate(0, kEpoch), 0.05);
  EXPECT_EQ(schedule.rate(200 * kEpoch - 128, kEpoch), 0.05);
  EXPECT_EQ(schedule.rate(200 * kEpoch, kEpoch), 0.05 * 0.1);
  EXPECT_EQ(schedule.rate(300 * kEpoch, kEpoch), 0.05 * (0.1 * 0.1));
}

TEST(Schedule, CosineFallsAlongHalfAPeriod) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .base = 0.4, .total_epochs = 20, .final_share = 0.1};
  EXPECT_EQ(schedule.rate(0, kEpoch), 0.4);
  for (const double epoch : {1.0, 7.5, 10.0, 19.0}) {
    const double expected = 0.4 * (0.1 + 0.9 * (1 + std::cos(M_PI * epoch / 20)) / 2);
    EXPECT_NEAR(schedule.rate(static_cast<std::uint64_t>(epoch * kEpoch), kEpoch), expected, 1e-14) << epoch;
  }
  EXPECT_NEAR(schedule.rate(20 * kEpoch, kEpoch), 0.04, 1e-16);
  EXPECT_NEAR(schedule.rate(25 * kEpoch, kEpoch), 0.04, 1e-16);
}

TEST(Schedule, CosineBeginsAgainInEachCycle) {
  const Schedule schedule{
      .kind = ScheduleKind::cosine, .base = 1, .warmup_epochs = 2, .total_epochs = 14, .final_share = 0.1, .cycles = 3};
  for (const std::uint64_t begin : {2, 6, 10}) {
    EXPECT_EQ(schedule.rate(begin * kEpoch, kEpoch), 1);
    EXPECT_NEAR(schedule.rate((begin + 2) * kEpoch, kEpoch), 0.55, 1e-14);
    EXPECT_LT(schedule.rate((begin + 4) * kEpoch - 1, kEpoch), 0.1001);
  }
  EXPECT_NEAR(schedule.rate(14 * kEpoch, kEpoch), 0.1, 1e-15);
}

// MXNet's PolyScheduler: final + (base - final) * (1 - t)^power.
TEST(Schedule, PolyFallsByAPowerOfWhatIsLeft) {
  const Schedule schedule{.kind = ScheduleKind::poly, .base = 2, .total_epochs = 10, .final_share = 0.25, .power = 1.5};
  EXPECT_EQ(schedule.rate(0, kEpoch), 2);
  for (const double epoch : {2.5, 5.0, 9.0}) {
    const double expected = 0.5 + 1.5 * std::pow(1 - epoch / 10, 1.5);
    EXPECT_NEAR(schedule.rate(static_cast<std::uint64_t>(epoch * kEpoch), kEpoch), expected, 1e-13) << epoch;
  }
  EXPECT_EQ(schedule.rate(10 * kEpoch, kEpoch), 0.5);
  EXPECT_EQ(schedule.rate(20 * kEpoch, kEpoch), 0.5);
}

// MXNet's LBSGD: start + (base - start) times the share, its square or its root; LRScheduler's constant.
TEST(Schedule, WarmUpsRiseByTheirNames) {
  const std::pair<WarmUp, double> halfway[] = {
      {WarmUp::linear, 0.5}, {WarmUp::power2, 0.25}, {WarmUp::sqrt, std::sqrt(0.5)}, {WarmUp::constant, 0}};
  for (const auto& [warmup, share] : halfway) {
    const Schedule schedule{.base = 2, .warmup_epochs = 4, .warmup = warmup, .warmup_start = 0.5};
    EXPECT_DOUBLE_EQ(schedule.rate(0, kEpoch), 0.5) << enum_name(kWarmUpNames, warmup);
    EXPECT_DOUBLE_EQ(schedule.rate(2 * kEpoch, kEpoch), 0.5 + 1.5 * share) << enum_name(kWarmUpNames, warmup);
    EXPECT_DOUBLE_EQ(schedule.rate(4 * kEpoch, kEpoch), 2) << enum_name(kWarmUpNames, warmup);
    EXPECT_EQ(to_json(schedule_from_json(to_json(schedule))), to_json(schedule));
  }
  const Schedule from_zero{.base = 2, .warmup_epochs = 4, .warmup_start = 0.0};
  EXPECT_EQ(from_zero.rate(0, kEpoch), 0);
  EXPECT_THROW(require_valid(Schedule{.base = 2, .warmup_epochs = 4, .warmup_start = 2.5}), UsageError);
  EXPECT_NO_THROW(require_valid(Schedule{.base = 2, .warmup_start = 2.5})) << "without a warm-up it has no effect";
  EXPECT_THROW(require_valid(Schedule{.base = 2, .warmup_epochs = 4, .warmup_start = -1.0}), UsageError);
}

TEST(Schedule, WarmUpRisesInAStraightLineAndCosineStartsAtItsEnd) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .base = 1, .warmup_epochs = 2, .total_epochs = 10};
  EXPECT_DOUBLE_EQ(schedule.rate(0, kEpoch), 0.04);
  EXPECT_DOUBLE_EQ(schedule.rate(kEpoch, kEpoch), 0.52);
  EXPECT_DOUBLE_EQ(schedule.rate(2 * kEpoch, kEpoch), 1);
  EXPECT_NEAR(schedule.rate(6 * kEpoch, kEpoch), 0.5, 1e-15);
}

TEST(Schedule, StepsCountFromTheStartEvenWithAWarmUp) {
  const Schedule schedule{.base = 1, .factor = 0.5, .boundaries = {3}, .warmup_epochs = 2};
  EXPECT_EQ(schedule.rate(2 * kEpoch, kEpoch), 1);
  EXPECT_EQ(schedule.rate(3 * kEpoch, kEpoch), 0.5);
}

TEST(Schedule, OneCycleRisesToItsPeakAndFallsToItsEnd) {
  const Schedule schedule{
      .kind = ScheduleKind::one_cycle, .base = 0.5, .total_epochs = 10, .final_share = 0.01, .rise_share = 0.4};
  EXPECT_DOUBLE_EQ(schedule.rate(0, kEpoch), 0.02);
  EXPECT_DOUBLE_EQ(schedule.rate(2 * kEpoch, kEpoch), 0.26);
  EXPECT_DOUBLE_EQ(schedule.rate(4 * kEpoch, kEpoch), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(7 * kEpoch, kEpoch), 0.5 * (1 + 0.01) / 2);
  EXPECT_DOUBLE_EQ(schedule.rate(11 * kEpoch, kEpoch), 0.005);
}

// A run without epochs is measured all the same.
TEST(Schedule, OfNoEpochsIsAtItsEnd) {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::one_cycle, ScheduleKind::poly}) {
    const Schedule schedule{.kind = kind, .base = 0.5, .total_epochs = 0, .final_share = 0.01};
    for (const std::uint64_t samples : {0, 128}) EXPECT_DOUBLE_EQ(schedule.rate(samples, kEpoch), 0.005);
  }
}

TEST(Schedule, DependsOnSamplesNotOnEpochSize) {
  const Schedule schedule{.kind = ScheduleKind::cosine, .total_epochs = 8};
  EXPECT_EQ(schedule.rate(3 * 1000, 1000), schedule.rate(3 * kEpoch, kEpoch));
}

TEST(Schedule, SurvivesJsonExactly) {
  const Schedule schedule{.kind = ScheduleKind::one_cycle,
                          .base = 1.0 / 3,
                          .factor = 0.2,
                          .boundaries = {1.5, 30},
                          .total_epochs = 90,
                          .final_share = 1e-3,
                          .rise_share = 0.25,
                          .cycles = 3,
                          .power = 0.9};
  const Json json = to_json(schedule);
  EXPECT_EQ(to_json(schedule_from_json(Json::parse(json.dump(), "test"))), json);
  EXPECT_EQ(schedule_from_json(json).base, 1.0 / 3);
  EXPECT_EQ(schedule_from_json(json).boundaries, schedule.boundaries);
}

// Checkpoints hold such schedules: what they hold besides is not lost with them.
TEST(Schedule, IsReadThoughItsValuesContradictEachOther) {
  const Schedule contradictions[] = {
      {.kind = ScheduleKind::cosine, .warmup_epochs = 2, .total_epochs = 2},
      {.kind = ScheduleKind::poly, .warmup_epochs = 3, .total_epochs = 2},
      {.kind = ScheduleKind::one_cycle, .warmup_epochs = 1, .total_epochs = 2},
      {.kind = ScheduleKind::cosine, .total_epochs = 2, .cycles = 2.5},
      {.base = 0.1, .warmup_epochs = 1, .total_epochs = 2, .warmup_start = 0.2},
      {.total_epochs = 0},
  };
  for (const Schedule& schedule : contradictions) {
    const Json json = to_json(schedule);
    EXPECT_THROW(require_valid(schedule), UsageError) << json.dump();
    EXPECT_EQ(to_json(schedule_from_json(json)), json);
  }
  Json negative = to_json(Schedule{});
  negative["base"] = -1.0;
  EXPECT_THROW(schedule_from_json(negative), UsageError);
}

TEST(Schedule, NamesReadBackAndATypoGetsTheNearest) {
  for (const char* name : {"step", "cosine", "one-cycle", "poly"})
    EXPECT_STREQ(schedule_name(parse_schedule(name)), name);
  try {
    parse_schedule("cosin");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.hint(), "did you mean cosine?");
  }
}

TEST(Schedule, RefusesValuesThatMakeNoSense) {
  EXPECT_NO_THROW(require_valid(Schedule{}));
  EXPECT_THROW(require_valid(Schedule{.base = 0}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.base = NAN}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.factor = -0.1}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.boundaries = {250, 200}}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.final_share = 2}), UsageError);
  EXPECT_NO_THROW(require_valid(Schedule{.rise_share = 0}));
  EXPECT_THROW(require_valid(Schedule{.rise_share = 1}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.kind = ScheduleKind::cosine, .warmup_epochs = 5, .total_epochs = 5}),
               UsageError);
  EXPECT_THROW(require_valid(Schedule{.kind = ScheduleKind::poly, .warmup_epochs = 5, .total_epochs = 5}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.kind = ScheduleKind::one_cycle, .warmup_epochs = 1}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.cycles = 0}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.cycles = 1.5}), UsageError);
  EXPECT_THROW(require_valid(Schedule{.power = 0}), UsageError);
}

}  // namespace
}  // namespace dtrain::nn
