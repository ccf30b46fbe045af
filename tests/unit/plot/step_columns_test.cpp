#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>

#include "step_columns.hpp"

namespace dtrain::plot {
namespace {

std::string line(int second, const std::string& rest) {
  return "{\"time\":\"2026-01-31T23:59:" + std::to_string(second) + ".500000Z\"," + rest + "}\n";
}
std::string step(int second, int number, const std::string& loss) {
  return line(second, "\"epoch\":0,\"step\":" + std::to_string(number) +
                          ",\"steps\":10,\"samples\":100,\"seconds\":0.5,\"loss\":" + loss +
                          ",\"samples_seen\":" + std::to_string(100 * (number + 1)));
}

TEST(StepColumns, TimesOfTheRecordsAreSeconds) {
  EXPECT_DOUBLE_EQ(seconds_of_time("1970-01-02T00:00:01.250000Z"), 86401.25);
  EXPECT_DOUBLE_EQ(seconds_of_time("1970-01-02T00:00:01Z"), 86401);
  for (const char* text : {"soon", "1970-01-02T00:00:01.x0Z", "1970-02-30T00:00:01.0Z", "1970-01-02T00:00:01.25", ""})
    EXPECT_THROW(seconds_of_time(text), DataError) << text;
}

TEST(StepColumns, EveryValueOfALineGetsAColumn) {
  StepColumns columns;
  columns.add(line(10, "\"begins\":true") + step(11, 0, "2.5") +
              line(12,
                   "\"epoch\":1,\"step\":0,\"steps\":10,\"samples\":50,\"seconds\":0.5,\"loss\":null,"
                   "\"gradient_norm\":3,\"words\":\"a\\\"b\",\"list\":[1,\"]\"]"));
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns.at(), (std::vector<double>{1, 2}));
  EXPECT_EQ(columns.steps(), (std::vector<double>{1, 11}));
  EXPECT_EQ(columns.find("speed")->values, (std::vector<double>{200, 100}));
  EXPECT_EQ(columns.find("loss")->values[0], 2.5);
  EXPECT_TRUE(std::isnan(columns.find("loss")->values[1]));
  EXPECT_TRUE(std::isnan(columns.find("gradient_norm")->values[0]));
  EXPECT_EQ(columns.find("gradient_norm")->values[1], 3);
  EXPECT_EQ(columns.find("samples"), nullptr);
}

std::string samples_line(int second, int step, int samples, double seconds, double loss) {
  return line(second, "\"epoch\":0,\"step\":" + std::to_string(step) + ",\"steps\":10,\"samples\":" +
                          std::to_string(samples) + ",\"seconds\":" + std::to_string(seconds) +
                          ",\"loss\":" + std::to_string(loss) + ",\"learning_rate\":" + std::to_string(0.5 * loss));
}

TEST(StepColumns, FewSamplesAtAnEpochsEndAreAPartOfTheLineBefore) {
  StepColumns columns;
  const std::string text = samples_line(11, 8, 900, 1, 2) + samples_line(12, 9, 100, 1, 0);
  columns.add(text);
  ASSERT_EQ(columns.size(), 1u);
  EXPECT_DOUBLE_EQ(columns.find("loss")->values[0], 1.8) << "weighted by samples";
  EXPECT_DOUBLE_EQ(columns.find("speed")->values[0], 500) << "1000 samples in 2 s";
  EXPECT_EQ(columns.find("learning_rate")->values[0], 0) << "of the last step";
  EXPECT_EQ(columns.samples(), std::vector<double>{1000});
  EXPECT_EQ(columns.steps(), std::vector<double>{10});
  EXPECT_EQ(columns.at(), std::vector<double>{1});
  EXPECT_EQ(columns.ends(), std::vector<std::uint64_t>{text.size()});
}

TEST(StepColumns, FewSamplesKeepTheirRowElsewhere) {
  StepColumns columns;
  columns.add(samples_line(11, 4, 900, 1, 2) + samples_line(12, 5, 100, 1, 0) + samples_line(13, 9, 90, 1, 0));
  EXPECT_EQ(columns.size(), 3u) << "fewer workers go on, and an epoch ends that is about as long";
  StepColumns first;
  first.add(samples_line(12, 9, 1, 1, 3) + samples_line(13, 0, 900, 1, 2));
  EXPECT_EQ(first.size(), 2u) << "there is no line before it";
  StepColumns diverged;
  diverged.add(samples_line(11, 8, 900, 1, 2) +
               line(12, "\"epoch\":0,\"step\":9,\"steps\":10,\"samples\":1,\"loss\":null"));
  ASSERT_EQ(diverged.size(), 2u);
  EXPECT_TRUE(std::isnan(diverged.find("loss")->values[1]));
}

TEST(StepColumns, FewSamplesAreNoPartOfAnotherEpochOrStart) {
  const auto epoch = [](int second, int number, int samples, double loss) {
    return line(second, "\"epoch\":" + std::to_string(number) + ",\"step\":9,\"steps\":10,\"samples\":" +
                            std::to_string(samples) + ",\"seconds\":1,\"loss\":" + std::to_string(loss));
  };
  StepColumns epochs;
  epochs.add(epoch(11, 0, 6400, 2) + epoch(12, 1, 640, 1) + epoch(13, 2, 640, 0.5));
  EXPECT_EQ(epochs.find("loss")->values, (std::vector<double>{2, 1, 0.5}));
  EXPECT_EQ(epochs.samples(), (std::vector<double>{6400, 640, 640}));
  StepColumns resumed;
  resumed.add(line(10, "\"begins\":true") + samples_line(11, 8, 900, 1, 2) + line(12, "\"begins\":true") +
              samples_line(13, 9, 100, 1, 0));
  EXPECT_EQ(resumed.size(), 2u) << "the epoch was resumed";
  StepColumns again;
  again.add(samples_line(11, 8, 900, 1, 2) + samples_line(12, 9, 100, 1, 0) + samples_line(13, 9, 100, 1, 0));
  EXPECT_EQ(again.size(), 2u) << "a row has one rest";
}

TEST(StepColumns, PassesOverWhatIsNoLine) {
  StepColumns columns;
  columns.add(step(11, 0, "2") + "\n{\"time\":\"2026-01-31T23:59:12.500000Z\",\"loss\":7,\"epo\n" + "[1]\nnonsense\n" +
              line(13, "\"loss\":") + step(14, 1, "1"));
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns.find("loss")->values, (std::vector<double>{2, 1}));
  EXPECT_EQ(columns.damaged(), 4u);
}

TEST(StepColumns, AClockThatIsSetBackDoesNotTurnTheTrainingBack) {
  StepColumns columns;
  columns.add(line(10, "\"begins\":true") + step(20, 0, "3") + step(15, 1, "2") + step(25, 2, "1"));
  EXPECT_EQ(columns.at(), (std::vector<double>{10, 10, 15}));
}

std::string end_of_epoch(int second, int epoch, int steps) {
  return line(second, "\"epoch\":" + std::to_string(epoch) + ",\"step\":" + std::to_string(steps - 1) +
                          ",\"steps\":" + std::to_string(steps) + ",\"loss\":1");
}

TEST(StepColumns, StepsGoOnWhereEpochsGetShorter) {
  StepColumns columns;
  columns.add(line(10, "\"begins\":true") + end_of_epoch(11, 0, 30) + end_of_epoch(12, 1, 30) +
              line(13, "\"epoch\":2,\"step\":3,\"steps\":30") + line(14, "\"epoch\":2,\"step\":10,\"steps\":16") +
              end_of_epoch(15, 2, 16) + end_of_epoch(16, 3, 15));
  EXPECT_EQ(columns.steps(), (std::vector<double>{30, 60, 64, 71, 76, 91}));
  EXPECT_EQ(columns.step_numbers().last_of(2), 76);
}

TEST(StepColumns, AResumeGoesBackOnTheAxisOfSteps) {
  StepColumns columns;
  const std::string text = line(10, "\"begins\":true") + end_of_epoch(11, 0, 30) + end_of_epoch(12, 1, 15) +
                           end_of_epoch(13, 2, 15) + line(20, "\"begins\":true") + end_of_epoch(21, 1, 10) +
                           end_of_epoch(22, 2, 10);
  columns.add(text);
  EXPECT_EQ(columns.steps(), (std::vector<double>{30, 45, 60, 40, 50}));
  // The same lines, from each of them on.
  for (std::size_t row = 1; row < columns.size(); ++row) {
    const TrainingClock clock = columns.clock().as_of(columns.begins()[row - 1], columns.at()[row - 1]);
    StepColumns again = columns.for_lines_behind(row, clock);
    again.add(std::string_view(text).substr(columns.ends()[row - 1]), columns.ends()[row - 1]);
    EXPECT_EQ(again.steps(),
              std::vector<double>(columns.steps().begin() + static_cast<std::ptrdiff_t>(row), columns.steps().end()));
  }
}

std::string step_of(int second, int step, int steps) {
  return line(second, "\"epoch\":1,\"step\":" + std::to_string(step) + ",\"steps\":" + std::to_string(steps));
}

TEST(StepColumns, EpochsDoNotGoBackWhereWorkersLeave) {
  StepColumns columns;
  const std::string text = line(10, "\"begins\":true") + end_of_epoch(11, 0, 30) + step_of(12, 4, 30) +
                           step_of(13, 9, 30) + step_of(14, 10, 50) + step_of(15, 29, 50) + step_of(16, 34, 40) +
                           step_of(17, 39, 40) + end_of_epoch(18, 2, 60);
  columns.add(text);
  const std::vector<double>& epochs = columns.epochs();
  EXPECT_TRUE(std::ranges::is_sorted(epochs)) << testing::PrintToString(epochs);
  EXPECT_EQ(epochs[6], 2);
  EXPECT_EQ(columns.most_epochs(), 3);
  // The same lines, from each of them on.
  for (std::size_t row = 1; row < columns.size(); ++row) {
    const TrainingClock clock = columns.clock().as_of(columns.begins()[row - 1], columns.at()[row - 1]);
    StepColumns again = columns.for_lines_behind(row, clock);
    again.add(std::string_view(text).substr(columns.ends()[row - 1]), columns.ends()[row - 1]);
    EXPECT_EQ(again.epochs(), std::vector<double>(epochs.begin() + static_cast<std::ptrdiff_t>(row), epochs.end()));
  }
}

TEST(StepColumns, ALineWithManyNamesDoesNotFillTheMemory) {
  std::string names;
  for (int i = 0; i < 1000; ++i) names += (i ? ",\"n" : "\"n") + std::to_string(i) + "\":1";
  StepColumns columns;
  columns.add(line(11, names));
  EXPECT_LE(columns.columns().size(), 64u);
}

}  // namespace
}  // namespace dtrain::plot
