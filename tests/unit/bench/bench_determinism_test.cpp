#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "bench_determinism.hpp"

namespace dtrain::bench {
namespace {

std::unique_ptr<backend::Executable> any_executable() {
  nn::GraphBuilder builder("one", {1, 2, 2});
  return backend::make_reference_backend()->compile(builder.finish(builder.add("fc", nn::Dense{2}, {0})),
                                                    {.max_samples = 1});
}

// What was timed: "a" as asked or "o" the other one, and how long.
struct Watch {
  Watch(std::vector<double> asked_takes, std::vector<double> other_takes)
      : asked_seconds(std::move(asked_takes)), other_seconds(std::move(other_takes)) {}

  std::unique_ptr<backend::Executable> asked = any_executable();
  std::string order;
  std::vector<BenchLength> lengths;
  std::vector<double> asked_seconds, other_seconds;  // of the coming turns

  DeterminismCost cost(bool deterministic, const BenchLength& length) {
    return cost_of_determinism(deterministic, *asked, any_executable, length,
                               [&](backend::Executable& one, const BenchLength& part) {
                                 const bool is_asked = &one == asked.get();
                                 order += is_asked ? 'a' : 'o';
                                 lengths.push_back(part);
                                 std::vector<double>& coming = is_asked ? asked_seconds : other_seconds;
                                 const double seconds = coming.back();
                                 if (coming.size() > 1) coming.pop_back();
                                 StepTimes times;
                                 times.seconds = {seconds};
                                 return times;
                               });
  }
};

TEST(DeterminismCost, IsTheDeterministicStepByTheOtherWhicheverWasAskedFor) {
  for (const bool deterministic : {true, false}) {
    Watch watch({3}, {2});
    const DeterminismCost cost = watch.cost(deterministic, {});
    EXPECT_EQ(cost.seconds_on, deterministic ? 3 : 2);
    EXPECT_EQ(cost.seconds_off, deterministic ? 2 : 3);
    EXPECT_DOUBLE_EQ(cost.ratio(), deterministic ? 1.5 : 2.0 / 3);
    EXPECT_EQ(cost.unknown, "");
  }
}

TEST(DeterminismCost, IsMeasuredInTurnsOfAllThatWasAskedFor) {
  Watch watch({1}, {1});
  const int turns = watch.cost(true, {.warmup = 25, .steps = 50, .seconds = 10}).turns;
  std::string alternating;
  for (int turn = 0; turn < turns; ++turn) alternating += "ao";
  EXPECT_EQ(watch.order, alternating);
  for (const BenchLength& length : watch.lengths) {
    EXPECT_EQ(length.steps * turns, 50);
    EXPECT_DOUBLE_EQ(length.seconds * turns, 10);
    EXPECT_LT(length.warmup, 25);
  }
}

TEST(DeterminismCost, NeverTurnsFewStepsIntoASpan) {
  Watch watch({1}, {1});
  watch.cost(true, {.warmup = 0, .steps = 1, .seconds = 3600});
  for (const BenchLength& length : watch.lengths) EXPECT_EQ(length.steps, 1);
  EXPECT_FALSE(watch.lengths.empty());
}

// The first one loads what is needed.
TEST(DeterminismCost, ForgetsATurnThatTookLong) {
  Watch watch({4, 4, 4, 4, 900}, {4, 4, 800, 4, 4});
  EXPECT_EQ(watch.cost(true, {}).ratio(), 1);
}

TEST(DeterminismCost, IsUnknownWhereMemoryDoesNotHoldBoth) {
  const auto asked = any_executable();
  const auto none = []() -> std::unique_ptr<backend::Executable> { throw UsageError("the model needs 60 GiB"); };
  const DeterminismCost cost =
      cost_of_determinism(true, *asked, none, {}, [](auto&, const auto&) { return StepTimes{}; });
  EXPECT_EQ(cost.unknown, "the model needs 60 GiB");
  EXPECT_EQ(cost.ratio(), 0);
}

}  // namespace
}  // namespace dtrain::bench
