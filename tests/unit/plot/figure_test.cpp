#include "figure.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain::plot {
namespace {

TEST(Figure, ManyPointsBecomeFewMeans) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({double(i), i % 2 ? 1.0 : 3.0});
  const auto few = thinned(points, 100);
  ASSERT_EQ(few.size(), 100u);
  for (const CurvePoint& point : few) EXPECT_EQ(point.value, 2);
  EXPECT_EQ(thinned({{1, 2}}, 100).size(), 1u);
}

TEST(Figure, MeansAreWeightedAndKnowFiniteValuesOnly) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 100; ++i)
    points.push_back({.at = double(i), .value = i % 2 ? 0.0 : 2.0, .weight = i % 2 ? 1.0 : 99.0});
  points[0].value = NAN;
  const auto few = thinned(points, 10);
  ASSERT_EQ(few.size(), 10u);
  for (const CurvePoint& point : few) EXPECT_NEAR(point.value, 1.98, 0.01);
  EXPECT_EQ(thinned(std::vector<CurvePoint>(100, {.value = NAN}), 10).size(), 0u);
}

std::vector<Dot> dots_of(const Drawing& drawing) {
  std::vector<Dot> dots;
  for (const Mark& mark : drawing.marks) {
    if (const auto* dot = std::get_if<Dot>(&mark)) dots.push_back(*dot);
  }
  return dots;
}

TEST(Figure, EveryValidationIsDrawn) {
  const auto drawn = [](int count) {
    std::vector<CurvePoint> points;
    for (int i = 0; i < count; ++i) points.push_back({double(i), i == 500 ? 1.0 : 0.5});
    Paper paper;
    paper.length = 1000;
    return dots_of(draw_figure(paper, {{"accuracy", {{&points, 0, true}}, true, 1.0}}));
  };
  const std::vector<Dot> many = drawn(1000), few = drawn(60);
  ASSERT_EQ(many.size(), 1000u) << "the best one among them";
  EXPECT_LT(many[500].at.y, many[499].at.y - 60);
  ASSERT_EQ(few.size(), 60u);
  EXPECT_LT(many[0].radius, few[0].radius);
}

TEST(Figure, TicksOfLargeNumbersAreShort) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(20'000), "20k");
  EXPECT_EQ(tick_text(1.5e9), "1.5G");
  EXPECT_EQ(tick_text(4.3e24), "4.3e+24");
  EXPECT_EQ(tick_text(-2e12), "-2e+12");
}

}  // namespace
}  // namespace dtrain::plot
