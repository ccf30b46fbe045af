#include "curves/levels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/json.hpp>

namespace dtrain::board {
namespace {

// Losses 1, 2, 3, ... of steps 1, 2, 3, ...
plot::StepColumns steps(int count, int from = 0) {
  plot::StepColumns columns;
  for (int i = from; i < count; ++i) {
    columns.add(
        fmt::format("{{\"time\":\"2026-01-31T23:{:02}:{:02}Z\",\"epoch\":0,\"step\":{},\"steps\":100,\"loss\":{}}}\n",
                    i / 60 % 60, i % 60, i, i == 5 ? "null" : std::to_string(i + 1)));
  }
  return columns;
}

TEST(Levels, AWindowHasANeighbourOnEitherSide) {
  const auto columns = steps(20);
  const Rows rows = rows_of(columns, {.from = 5, .to = 8});
  EXPECT_EQ(rows.first, 3u);  // of step 4
  EXPECT_EQ(rows.last, 9u);
  EXPECT_EQ(rows_of(columns, {}).last, 20u);
  EXPECT_EQ(rows_of(columns, {.from = 50, .to = 60}).last, 0u);
}

TEST(Levels, ManyRowsBecomePointsWithMeanLowAndHigh) {
  const auto columns = steps(100);
  const auto level = level_of(columns, columns.find("loss")->values, Axis::steps, {0, 100}, 10);
  ASSERT_EQ(level.size(), 10u);
  EXPECT_EQ(level[1].count, 10u);
  EXPECT_EQ(level[1].x, 20);
  EXPECT_EQ(level[1].mean, 15.5);
  EXPECT_EQ(level[1].low, 11);
  EXPECT_EQ(level[1].high, 20);
  EXPECT_NEAR(level[0].mean, (55 - 6) / 9.0, 1e-6) << "a value that is missing does not count";
}

TEST(Levels, FewRowsStayAsTheyAre) {
  const Json json = Json::parse(levels_json(levels_of(steps(7), {.points = 800})), "levels");
  EXPECT_EQ(json.at("rows").as_integer(), 7);
  EXPECT_EQ(json.at("x").as_array().size(), 7u);
  const Json& loss = json.at("columns").at("loss");
  EXPECT_EQ(loss.at("mean").as_array()[6].as_number(), 7);
  EXPECT_TRUE(loss.at("mean").as_array()[5].is_null());
  EXPECT_EQ(loss.find("low"), nullptr);
}

TEST(Levels, NothingIsAPictureToo) {
  const Json json = Json::parse(levels_json(levels_of({}, {})), "levels");
  EXPECT_TRUE(json.at("x").as_array().empty());
  EXPECT_TRUE(json.at("columns").as_object().empty());
}

TEST(Levels, AResumeAtAnEarlierStepKeepsBothTries) {
  auto columns = steps(20);
  columns.add("{\"time\":\"2026-01-31T23:30:00Z\",\"begins\":true}\n");
  columns.add("{\"time\":\"2026-01-31T23:30:01Z\",\"epoch\":0,\"step\":9,\"steps\":100,\"loss\":70}\n");
  const Rows rows = rows_of(columns, {.from = 10, .to = 10});
  EXPECT_EQ(rows.last, 21u);
}

}  // namespace
}  // namespace dtrain::board
