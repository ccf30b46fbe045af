#include "curves/step_levels.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace dtrain::board {
namespace {

// Line i of a run of 100 steps an epoch: a loss with all the digits of a double, and box_loss in each third line from
// line 500 on. It stops after line 700 and is resumed at step 600.
std::string line(int i) {
  const int step = i < 700 ? i : i - 100;
  return fmt::format(
      "{}{{\"time\":\"2026-01-{:02}T{:02}:{:02}:{:02}.250000Z\",\"epoch\":{},\"step\":{},\"steps\":100,\"samples\":10,"
      "\"seconds\":0.3,\"loss\":{}{}}}\n",
      i == 700 ? "{\"time\":\"2026-01-09T00:00:00Z\",\"begins\":true}\ntorn\n" : "", i < 700 ? 1 : 9, i / 3600 % 24,
      i / 60 % 60, i % 60, step / 100, step % 100, 1 / (1.0 + i),
      i >= 500 && i % 3 == 0 ? ",\"box_loss\":" + std::to_string(i) : "");
}

struct Course {
  explicit Course(int count) {
    for (int i = 0; i < count; ++i) text += line(i);
    all.add(text);
    // In pieces, as the file is read.
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', std::min(text.size() - 1, at + 1777)) + 1;
      levels.add(std::string_view(text).substr(at, end - at), at);
      at = end;
    }
  }
  // What the page gets.
  Levels seen(const Window& window) const {
    auto wanted = levels.lines_for(window);
    if (!wanted) return levels.levels(window);
    wanted->rows.add(std::string_view(text).substr(wanted->begin, wanted->end - wanted->begin), wanted->begin);
    return levels_of(wanted->rows, window);
  }

  std::string text;
  plot::StepColumns all;
  StepLevels levels;
};

const Levels::Column& column(const Levels& levels, std::string_view name) {
  return *std::ranges::find(levels.columns, name, &Levels::Column::name);
}

TEST(StepLevels, AWindowThatIsLookedAtCloselyHasTheValuesOfTheFile) {
  const Course course(5000);
  for (const Window& window : {Window{.from = 200, .to = 260}, Window{.from = 4000, .to = 9e9},
                               Window{.axis = Axis::epochs, .from = 5.5, .to = 6.25},
                               Window{.axis = Axis::time, .from = 650, .to = 950}, Window{.from = -5, .to = 90}}) {
    ASSERT_TRUE(course.levels.lines_for(window));
    const Levels seen = course.seen(window), whole = levels_of(course.all, window);
    EXPECT_EQ(seen.range.first, whole.range.first);
    EXPECT_EQ(seen.range.last, whole.range.last);
    ASSERT_EQ(seen.columns.size(), whole.columns.size()) << "also those that no line of the window has";
    for (const Levels::Column& expected : whole.columns) {
      const auto& points = column(seen, expected.name).points;
      ASSERT_EQ(points.size(), expected.points.size());
      for (std::size_t i = 0; i < points.size(); ++i) {
        EXPECT_DOUBLE_EQ(points[i].x, expected.points[i].x);
        if (std::isfinite(expected.points[i].mean)) {
          EXPECT_EQ(points[i].mean, expected.points[i].mean);
        }
      }
    }
  }
}

TEST(StepLevels, DigitsOfTheFileAreShown) {
  const Course course(3000);
  const Levels seen = course.seen({.from = 1000, .to = 1002});
  EXPECT_NE(levels_json(seen).find(fmt::format("{}", 1 / 1101.0)), std::string::npos) << levels_json(seen);
}

TEST(StepLevels, ALongRunTakesLittleMemoryAndShowsAllOfIt) {
  const Course course(300'000);
  EXPECT_FALSE(course.levels.lines_for({})) << "a picture of all of it reads no file";
  EXPECT_LT(course.levels.tail().size(), 2000u);
  const Levels levels = course.levels.levels({.points = 800});
  const auto& loss = column(levels, "loss").points;
  EXPECT_GT(loss.size(), 400u);
  EXPECT_LE(loss.size(), 800u);
  double sum = 0;
  std::size_t rows = 0;
  for (const LevelPoint& point : loss) {
    sum += point.mean * static_cast<double>(point.count);
    rows += point.count;
    EXPECT_LE(point.low, point.high);
  }
  EXPECT_EQ(rows, 300'000u);
  EXPECT_EQ(course.levels.size(), 300'000u);
  double expected = 0;
  for (const double value : course.all.find("loss")->values) expected += value;
  EXPECT_NEAR(sum, expected, 1e-9 * expected);
  EXPECT_EQ(loss.back().x, course.all.steps().back());
  EXPECT_TRUE(std::isnan(column(levels, "box_loss").points.front().mean)) << "a column that begins later";
  EXPECT_NEAR(column(levels, "box_loss").points.back().mean, 299'990, 200);
}

TEST(StepLevels, EachBlockHasTheMeanLowAndHighOfItsLines) {
  const Course course(40'000);
  const Window window{.points = 600};
  ASSERT_FALSE(course.levels.lines_for(window));
  std::size_t row = 0;
  const Levels levels = course.levels.levels(window);
  for (const LevelPoint& point : column(levels, "loss").points) {
    double sum = 0, low = 9, high = 0;
    for (std::size_t i = row; i < row + point.count; ++i) {
      const double value = course.all.find("loss")->values[i];
      sum += value;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    EXPECT_NEAR(point.mean, sum / static_cast<double>(point.count), 1e-12);
    EXPECT_NEAR(point.low, low, 1e-6);
    EXPECT_NEAR(point.high, high, 1e-6);
    row += point.count;
    EXPECT_EQ(point.x, course.all.steps()[row - 1]);
  }
  EXPECT_EQ(row, 40'000u);
}

TEST(StepLevels, AWindowBesideTheRunIsEmpty) {
  const Course course(2000);
  const Levels levels = course.seen({.from = 1e7, .to = 2e7});
  EXPECT_TRUE(column(levels, "loss").points.empty());
}

TEST(StepLevels, NoAnswerReadsAHugeFile) {
  const Course course(300'000);
  EXPECT_FALSE(course.levels.lines_for({.points = 20'000}));
  EXPECT_TRUE(Course(20'000).levels.lines_for({.points = 20'000}));
}

TEST(StepLevels, AShortRunIsInMemory) {
  const Course course(20);
  EXPECT_FALSE(course.levels.lines_for({}));
  EXPECT_EQ(column(course.levels.levels({}), "loss").points.size(), 20u);
}

}  // namespace
}  // namespace dtrain::board
