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

std::vector<Line> curves_in(const Drawing& drawing) {
  std::vector<Line> lines;
  for (const Mark& mark : drawing.marks) {
    if (const auto* line = std::get_if<Line>(&mark); line && line->width == 1.8) lines.push_back(*line);
  }
  return lines;
}

TEST(Figure, ALineDoesNotGoOnAcrossAPause) {
  const std::vector<CurvePoint> points = {{1, 10}, {2, 10}, {80, 10}, {81, 10}};
  const std::vector<Pause> pauses = {{2.5, 79.5}};
  Paper paper;
  paper.length = 100;
  EXPECT_EQ(curves_in(draw_figure(paper, {{"speed", {{.points = &points, .color = 0}}}})).size(), 1u);
  const auto lines = curves_in(draw_figure(paper, {{"speed", {{.points = &points, .color = 0, .breaks = &pauses}}}}));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].points.size(), 2u);
  EXPECT_LT(lines[0].points.back().x, lines[1].points.front().x - 100);
}

TEST(Figure, ACurveThatDoesNotSetTheScaleLeavesItAlone) {
  const std::vector<CurvePoint> calm = {{1, 1}, {2, 2}}, wild = {{1, 1}, {2, 1e16}};
  Paper paper;
  paper.length = 2;
  const auto height = [&](bool sets_scale) {
    const auto lines = curves_in(draw_figure(paper, {{"loss", {{&calm, 0}, {&wild, 1, false, sets_scale}}}}));
    return std::abs(lines.at(0).points.at(0).y - lines.at(0).points.at(1).y);
  };
  EXPECT_LT(height(true), 1);
  EXPECT_GT(height(false), 100);
}

TEST(Figure, ASignAtTheEdgeEndsWithinThePicture) {
  Paper paper;
  paper.length = 100;
  paper.changes = {{0, MembershipChange::Kind::joined, "a-host-with-a-long-name.example.com"},
                   {100, MembershipChange::Kind::lost, "a-host-with-a-long-name.example.com"}};
  const Drawing drawing = draw_figure(paper, {{"loss", {}}});
  int signs = 0;
  for (const Mark& mark : drawing.marks) {
    const auto* label = std::get_if<Label>(&mark);
    if (!label || label->text.find("a-host") == std::string::npos) continue;
    const double half = 0.6 * label->size * static_cast<double>(label->text.size() - 2) / 2;
    EXPECT_GE(label->at.x - half, 0);
    EXPECT_LE(label->at.x + half, drawing.width);
    ++signs;
  }
  EXPECT_EQ(signs, 2);
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
