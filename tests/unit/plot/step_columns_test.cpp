#include <gtest/gtest.h>

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

TEST(StepColumns, ALineWithManyNamesDoesNotFillTheMemory) {
  std::string names;
  for (int i = 0; i < 1000; ++i) names += (i ? ",\"n" : "\"n") + std::to_string(i) + "\":1";
  StepColumns columns;
  columns.add(line(11, names));
  EXPECT_LE(columns.columns().size(), 64u);
}

}  // namespace
}  // namespace dtrain::plot
