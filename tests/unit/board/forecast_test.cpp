#include "board/forecast.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

constexpr const char* kSettings = "# recipe\nnum-epochs = 4\n";

// The line at this second of an epoch with 100 steps of 64 samples.
std::string line(int second, int epoch, int step, int samples = 640) {
  return fmt::format(
      R"({{"time":"2026-01-31T12:{:02}:{:02}.000000Z","epoch":{},"step":{},"steps":100,"samples":{},"seconds":1}})"
      "\n",
      second / 60, second % 60, epoch, step, samples);
}

const std::string kBegin = "{\"time\":\"2026-01-31T11:00:00Z\",\"begins\":true}\n";

TEST(Forecast, IsWhatIsLeftAtThePaceSoFar) {
  const std::string steps = kBegin + line(0, 0, 9) + line(10, 0, 19) + line(20, 0, 29);
  const Forecast made = forecast_of(steps, kSettings);
  EXPECT_DOUBLE_EQ(made.samples_per_second, 64);
  EXPECT_DOUBLE_EQ(made.measured_seconds, 20);
  EXPECT_NEAR(made.epochs_done, 0.3, 1e-9);
  EXPECT_NEAR(made.samples_left(), 3.7 * 6400, 1e-6);
  EXPECT_NEAR(made.seconds_left(), 370, 1e-6);
  EXPECT_NEAR(made.seconds(), 400, 1e-6);
}

TEST(Forecast, CountsTheEvaluationBetweenEpochs) {
  const std::string steps = kBegin + line(0, 0, 9) + line(90, 0, 99, 5760) + line(200, 1, 9);
  EXPECT_DOUBLE_EQ(forecast_of(steps, kSettings).samples_per_second, 32);
}

TEST(Forecast, LooksAtTheLastTenMinutesAndAtOneWholeEpoch) {
  std::string steps = kBegin;
  for (int minute = 0; minute < 40; ++minute) steps += line(60 * minute, 0, minute, 64);  // one step a minute
  for (int ten = 1; ten <= 59; ++ten) steps += line(2340 + 10 * ten, 0, 39 + ten, 64);    // then six
  EXPECT_NEAR(forecast_of(steps, kSettings).samples_per_second, 6.4, 1e-9);
}

TEST(Forecast, BeginsAnewWhereTheTrainingDoes) {
  const std::string steps = kBegin + line(0, 0, 9) + line(100, 0, 19) + kBegin + line(200, 1, 49) + line(220, 1, 59);
  const Forecast made = forecast_of(steps + "{\"time\":\"2026-01-31T12:", kSettings);
  EXPECT_DOUBLE_EQ(made.samples_per_second, 32);
  EXPECT_NEAR(made.epochs_done, 1.6, 1e-9);
}

// One worker of two leaves behind 10 of 30 steps, so that 40 are left.
TEST(Forecast, KnowsHowMuchOfTheEpochIsDoneWhereAWorkerLeft) {
  const auto step = [](int second, int number, int steps) {
    return fmt::format(
        R"({{"time":"2026-01-31T12:00:{:02}.000000Z","epoch":0,"step":{},"steps":{},"samples":64,"seconds":1}})"
        "\n",
        second, number, steps);
  };
  const std::string course = kBegin + step(0, 0, 30) + step(10, 9, 30) + step(50, 29, 50);
  EXPECT_NEAR(forecast_of(course, kSettings).epochs_done, 2 / 3.0, 1e-9);
}

TEST(Forecast, ReadsTheEndOfALongRecord) {
  std::string steps = kBegin;
  while (steps.size() < (3u << 20)) steps += line(0, 0, 1, 64);
  for (int ten = 0; ten <= 120; ++ten) steps += line(1200 + 10 * ten, 0, 2 + ten / 2, 64);
  std::uint64_t bytes = 0;
  const ReadPart part = [&](std::uint64_t from, std::uint64_t size) {
    bytes += size;
    return steps.substr(from, size);
  };
  const std::string end = steps_for_forecast(steps.size(), part);
  EXPECT_LT(bytes, steps.size()) << "the last ten minutes are in the first piece";
  EXPECT_EQ(forecast_of(end, kSettings).samples_per_second, forecast_of(steps, kSettings).samples_per_second);
  EXPECT_EQ(steps_for_forecast(0, part), "");

  std::string slow = kBegin;  // one epoch, and the next one has begun: all of it counts
  while (slow.size() < (5u << 20)) slow += line(10, 0, 9, 64);
  slow += line(3000, 1, 9, 64);
  const std::string all =
      steps_for_forecast(slow.size(), [&](std::uint64_t from, std::uint64_t size) { return slow.substr(from, size); });
  EXPECT_EQ(all, slow);
}

TEST(Forecast, GuessesNothing) {
  EXPECT_THROW(forecast_of("", kSettings), UsageError);
  EXPECT_THROW(forecast_of(kBegin, kSettings), UsageError);
  EXPECT_THROW(forecast_of(kBegin + line(0, 0, 9), kSettings), UsageError);
  EXPECT_THROW(forecast_of(kBegin + line(0, 0, 9) + line(9, 0, 19), kSettings), UsageError);
  EXPECT_THROW(forecast_of(kBegin + line(0, 0, 9) + line(20, 0, 19), "batch-size = 3\n"), UsageError);
}

}  // namespace
}  // namespace dtrain::board
