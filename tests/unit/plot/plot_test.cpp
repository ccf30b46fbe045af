#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include <dtrain/base/error.hpp>

#include "drawing_raster.hpp"
#include "figure.hpp"
#include "plot_figure.hpp"
#include "plot_report.hpp"
#include "plot_run.hpp"
#include "plot_style.hpp"

namespace dtrain::plot {
namespace {

std::string at(int second) {
  return "2026-01-31T23:59:" + std::string(second < 10 ? "0" : "") + std::to_string(second) + ".500000Z";
}
Json begins(int second) { return Json::object({{"time", at(second)}, {"begins", true}}); }
Json window(int second, double loss) {
  return Json::object({{"time", at(second)}, {"samples", 100}, {"seconds", 0.5}, {"loss", loss}, {"accuracy", 0.25}});
}
Json commit(int second, std::initializer_list<Json> members) {
  return Json::object({{"time", at(second)}, {"event", "commit"}, {"members", Json::array(members)}});
}

// The lines as they stand in steps.jsonl.
StepColumns columns_of(const std::vector<Json>& lines) {
  StepColumns columns;
  for (const Json& line : lines) columns.add(line.dump() + "\n");
  return columns;
}
RunCurves curves_of(const std::vector<Json>& steps, const std::vector<Json>& events) {
  return curves_of(columns_of(steps), events);
}

TEST(PlotRun, CurvesBeginWithTheTraining) {
  const std::vector<Json> steps = {begins(10), window(12, 2.0), window(14, 1.0)};
  const RunCurves curves = curves_of(steps, {});
  ASSERT_EQ(curves.loss.size(), 2u);
  EXPECT_EQ(curves.loss[1].at, 4);
  EXPECT_EQ(curves.loss[1].value, 1.0);
  EXPECT_EQ(curves.speed[0].value, 200);
  EXPECT_EQ(curves.seconds, 4);
}

TEST(PlotRun, EventsThatLackAMemberArePassedOver) {
  const auto damaged = [](const char* event) { return Json::object({{"time", at(13)}, {"event", event}}); };
  const std::vector<Json> events = {
      Json::object({{"time", at(12)}, {"event", "lost"}, {"message", "the weights of epoch 3"}}),
      damaged("failed"),
      damaged("commit"),
      damaged("evaluation"),
      Json::object({{"time", "noon"}, {"event", "commit"}}),
      Json::object({{"event", "commit"}}),
      Json::object({{"time", at(14)}}),
      Json::object({{"time", at(14)}, {"event", "evaluation"}, {"accuracy", 0.5}})};
  const RunCurves curves = curves_of(std::vector<Json>{begins(10), window(12, 2.0)}, events);
  EXPECT_EQ(curves.loss.size(), 1u);
  EXPECT_EQ(curves.validation_accuracy.size(), 1u);
  EXPECT_TRUE(curves.changes.empty());
}

TEST(PlotRun, PointsKnowTheEpochsThatWereTrained) {
  Json line = window(12, 2.0);
  line["epoch"] = 1;
  line["step"] = 4;
  line["steps"] = 10;
  const Json evaluation =
      Json::object({{"time", at(13)}, {"event", "evaluation"}, {"epoch", 1}, {"loss", 1.0}, {"accuracy", 0.5}});
  const RunCurves curves = curves_of(std::vector<Json>{begins(10), line}, std::vector<Json>{evaluation});
  EXPECT_DOUBLE_EQ(curves.loss.at(0).epochs, 1.5);
  EXPECT_DOUBLE_EQ(curves.epochs, 1.5);
  EXPECT_DOUBLE_EQ(curves.validation_accuracy.at(0).epochs, 2);
}

TEST(PlotRun, KnowsTheLossOfTheNewestEpoch) {
  const auto ended = [](int second, const Json& loss) {
    return Json::object({{"time", at(second)}, {"event", "epoch"}, {"epoch", second - 12}, {"loss", loss}});
  };
  const std::vector<Json> steps = {begins(10), window(14, 1.0)};
  EXPECT_FALSE(curves_of(steps, {ended(9, 4.0)}).epoch_loss) << "an earlier training in the same folder";
  EXPECT_EQ(curves_of(steps, {ended(12, 3.0), ended(13, 2.0)}).epoch_loss, 2.0);
  EXPECT_EQ(curves_of(steps, {ended(12, 3.0), ended(13, Json())}).epoch_loss, 3.0);
}

TEST(PlotRun, AnEvaluationOfADetectorHasNoLoss) {
  const Json evaluation =
      Json::object({{"time", at(13)}, {"event", "evaluation"}, {"epoch", 0}, {"loss", Json()}, {"accuracy", 0.25}});
  const RunCurves curves = curves_of(std::vector<Json>{begins(10)}, std::vector<Json>{evaluation});
  EXPECT_TRUE(curves.validation_loss.empty());
  EXPECT_EQ(curves.validation_accuracy.at(0).value, 0.25);
}

TEST(PlotRun, ADetectorHasCurvesOfItsBoxesAndMasks) {
  Json evaluation =
      Json::object({{"time", at(13)}, {"event", "evaluation"}, {"epoch", 0}, {"loss", Json()}, {"accuracy", 0.25}});
  const auto curves = [&] {
    return curves_of(std::vector<Json>{begins(10), window(14, 1.0)}, std::vector<Json>{evaluation});
  };
  const auto pictured = [](const Drawing& drawing) {
    const std::string svg = to_svg(drawing);
    return std::pair(svg.find(">average precision of boxes<") != svg.npos,
                     svg.find(">average precision of masks<") != svg.npos);
  };
  EXPECT_EQ(pictured(draw_run(curves(), "a")), std::pair(false, false));
  evaluation["boxes"] = Json::object({{"ap", 0.25}});
  EXPECT_EQ(pictured(draw_run(curves(), "a")), std::pair(true, false));
  evaluation["masks"] = Json::object({{"ap", 0.125}});
  ASSERT_EQ(curves().validation_masks.size(), 1u);
  EXPECT_EQ(curves().validation_masks[0].value, 0.125);
  EXPECT_EQ(curves().validation_masks[0].at, 3);
  EXPECT_EQ(pictured(draw_run(curves(), "a")), std::pair(true, true));
  const Drawing mixed = draw_comparison({{"a", curves()}, {"b", {}}});
  EXPECT_EQ(pictured(mixed), std::pair(false, true));
  EXPECT_NE(to_svg(mixed).find(">accuracy, or average precision of boxes<"), std::string::npos);
}

TEST(PlotRun, TheTimeBetweenAStopAndItsResumeDoesNotCount) {
  const std::vector<Json> steps = {begins(10), window(12, 2.0), begins(50), window(51, 1.0)};
  const RunCurves curves = curves_of(steps, {});
  EXPECT_EQ(curves.loss[1].at, 3);
  ASSERT_EQ(curves.changes.size(), 1u);
  EXPECT_EQ(curves.changes[0].kind, MembershipChange::Kind::resumed);
  EXPECT_EQ(curves.changes[0].at, 2);
}

Json generation(int second, double pause) {
  return Json::object({{"time", at(second)}, {"event", "generation"}, {"pause_seconds", pause}});
}

TEST(PlotRun, KnowsTheLongPauses) {
  const RunCurves curves =
      curves_of({begins(10), window(12, 2.0), window(50, 1.0)}, {generation(11, 0.1), generation(48, 30)});
  ASSERT_EQ(curves.pauses.size(), 1u);
  EXPECT_EQ(curves.pauses[0].from, 8);
  EXPECT_EQ(curves.pauses[0].to, 38);
}

TEST(PlotRun, APauseLiesInTheStartThatItBelongsTo) {
  const auto resumed = curves_of({begins(0), window(20, 2.0), begins(40), window(52, 1.0)}, {generation(50, 30)});
  ASSERT_EQ(resumed.pauses.size(), 1u);
  EXPECT_EQ(resumed.pauses[0].from, 20) << "where it was resumed";
  for (const Json& late : {generation(36, 10), generation(50, 9)})
    EXPECT_TRUE(curves_of({begins(0), window(20, 2.0), begins(40)}, {late}).pauses.empty()) << "behind the last line";
}

TEST(PlotRun, ChangesTellWhoJoinedLeftAndWasLost) {
  const std::vector<Json> steps = {begins(10), window(30, 1.0)};
  const std::vector<Json> events = {
      commit(5, {"other"}),  // of an earlier run in the same folder
      commit(11, {"w1", "w2"}),
      commit(12, {"w1", "w2", "w3"}),
      Json::object({{"time", at(13)}, {"event", "lost"}, {"host", "w2"}, {"reason", "gone"}}),
      commit(14, {"w1", "w3"}),
      Json::object({{"time", at(14)}, {"event", "failed"}, {"host", "w1"}, {"reason", "no room on its disk"}}),
      commit(15, {"w3"})};  // w1 was not admitted again
  const RunCurves curves = curves_of(steps, events);
  ASSERT_EQ(curves.changes.size(), 3u);
  EXPECT_EQ(curves.changes[0].host, "w3");
  EXPECT_EQ(curves.changes[0].kind, MembershipChange::Kind::joined);
  EXPECT_EQ(curves.changes[1].host, "w2");
  EXPECT_EQ(curves.changes[1].kind, MembershipChange::Kind::lost);
  EXPECT_EQ(curves.changes[2].host, "w1");
  EXPECT_EQ(curves.changes[2].kind, MembershipChange::Kind::left);
  ASSERT_EQ(curves.crews.size(), 4u);
  EXPECT_EQ(curves.crews.back().workers, 1);
}

TEST(PlotFigure, ManyCrewsAreCutBetweenTheirNumbers) {
  RunCurves curves = curves_of(std::vector<Json>{begins(10), window(14, 1.0)}, std::vector<Json>{});
  curves.crews = {{0, 100}};
  for (int i = 1; i < 30; ++i) curves.crews.push_back({i / 10.0, 1 + i % 2});
  const std::string svg = to_svg(draw_run(curves, "a"));
  EXPECT_NE(svg.find("workers 100 \u00b7 2 \u00b7 1 "), svg.npos);
  EXPECT_NE(svg.find("2 \u00b7 1 \u00b7 \u2026"), svg.npos);
  EXPECT_EQ(svg.find("\xC2\u2026"), svg.npos) << "half of a letter";
}

TEST(PlotFigure, TicksAreRoundAndWithin) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  const std::vector<double> small = round_ticks(0.93, 1.02, 4);
  ASSERT_FALSE(small.empty());
  EXPECT_GE(small.front(), 0.93);
  EXPECT_LE(small.back(), 1.02);
  EXPECT_NEAR(small[1] - small[0], 0.05, 1e-12);
}

TEST(PlotFigure, ThereAreNoTicksWhereDoublesCannotTellThemApart) {
  EXPECT_TRUE(round_ticks(1e18, 1e18, 4).empty());
  EXPECT_TRUE(round_ticks(-1.7e308, 1.7e308, 4).empty());
  EXPECT_LE(round_ticks(5.6e15 - 0.5, 5.6e15 + 0.5, 4).size(), 50u);
}

TEST(PlotFigure, ASingleHugeValueIsDrawnInTheMiddle) {
  for (const double loss : {5.6e15, 1e18}) {
    const std::vector<CurvePoint> points = {{0, loss}};
    const Drawing drawing = draw_figure(Paper(), {{"loss", {{&points, 0}}}});
    double lowest = 0, highest = 0, dot = 0;
    for (const Mark& mark : drawing.marks) {
      if (const auto* line = std::get_if<Line>(&mark); line && line->color == kGrid) {
        lowest = std::max(lowest, line->points.front().y);
        highest = highest == 0 ? line->points.front().y : std::min(highest, line->points.front().y);
      }
      if (const auto* point = std::get_if<Dot>(&mark)) dot = point->at.y;
    }
    EXPECT_GT(lowest, dot) << loss;
    EXPECT_LT(highest, dot) << loss;
  }
}

TEST(PlotFigure, ALongNameEndsBeforeTheLegend) {
  const std::string name(200, 'x');
  const RunCurves curves = curves_of(std::vector<Json>{begins(10), window(14, 1.0)}, std::vector<Json>{});
  const auto check = [](const Drawing& drawing) {
    double title_end = 0, legend_begin = drawing.width;
    for (const Mark& mark : drawing.marks) {
      const auto* label = std::get_if<Label>(&mark);
      if (!label) continue;
      std::size_t letters = 0;
      for (const char c : label->text) letters += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
      const double wide = kLetterShare * label->size * static_cast<double>(letters);
      if (label->size == 20) title_end = label->at.x + wide;
      if (label->size == 12 && label->anchor == Anchor::end) legend_begin = std::min(legend_begin, label->at.x - wide);
    }
    EXPECT_GT(title_end, 0);
    EXPECT_LT(title_end, legend_begin);
  };
  check(draw_run(curves, name));
  check(draw_comparison({{name, curves}, {name, curves}}));
}

TEST(PlotRun, KnowsThatTheLastLossIsNotFinite) {
  Json last = window(14, 1.0);
  EXPECT_FALSE(curves_of({begins(10), window(12, 2.0), last}, {}).diverged);
  last["loss"] = Json();
  const RunCurves curves = curves_of({begins(10), window(12, 2.0), last}, {});
  EXPECT_TRUE(curves.diverged);
  EXPECT_EQ(curves.loss.size(), 1u);
  EXPECT_NE(to_svg(draw_run(curves, "a")).find("; it diverged"), std::string::npos);
}

// A training writes no line of the step at which it ends so.
TEST(PlotRun, KnowsThatTheTrainingEndedByANumberThatIsNotFinite) {
  const auto finish = [](int second, const char* reason) {
    return Json::object({{"time", at(second)}, {"event", "finish"}, {"exit_code", 1}, {"reason", reason}});
  };
  const auto goodput = Json::object({{"time", at(15)}, {"event", "goodput"}});
  const std::vector<Json> steps = {begins(10), window(12, 123.2)};
  for (const char* const reason : {"the loss is not finite at epoch 0 step 1 with learning rate 1e+30",
                                   "w1: a weight is not finite at epoch 0 step 1 with learning rate 1e+30"}) {
    EXPECT_TRUE(curves_of(steps, {finish(13, reason), goodput}).diverged) << reason;
    EXPECT_FALSE(curves_of(steps, {finish(13, reason), commit(14, {"w1"})}).diverged) << "the job goes on";
    EXPECT_FALSE(curves_of({begins(10), window(12, 123.2), begins(20)}, {finish(13, reason)}).diverged) << "resumed";
    EXPECT_FALSE(curves_of(steps, {finish(13, reason), begins(14), finish(15, "done")}).diverged) << "the last end";
  }
  EXPECT_FALSE(curves_of(steps, {finish(13, "the disk is full")}).diverged);
  EXPECT_FALSE(curves_of(steps, {Json::object({{"time", at(13)}, {"event", "finish"}})}).diverged);
}

TEST(PlotFigure, ARunWithoutAnyCurveIsDrawnToo) {
  RunCurves curves;
  EXPECT_NE(to_svg(draw_run(curves, "empty")).find("empty"), std::string::npos);
  curves.loss = {{1, NAN}, {2, 1}};
  EXPECT_EQ(to_svg(draw_run(curves, "x")).find("nan"), std::string::npos);
}

TEST(PlotFigure, RunsThatAreComparedHaveANameInTheirColour) {
  RunCurves curves;
  curves.epochs = 3;
  curves.loss = {{1, 2, 0.5}, {2, 1, 3}};
  std::vector<NamedRun> runs;
  for (std::size_t i = 0; i < kMostRuns; ++i)
    runs.push_back({"a run with a long name, number " + std::to_string(i), curves});
  const Drawing drawing = draw_comparison(runs);
  std::set<Color> lines;
  std::map<std::string, Label> names;
  for (const Mark& mark : drawing.marks) {
    if (const auto* line = std::get_if<Line>(&mark); line && line->width == 1.8) lines.insert(line->color);
    if (const auto* label = std::get_if<Label>(&mark)) names.emplace(label->text, *label);
  }
  EXPECT_EQ(lines.size(), kMostRuns);
  double lowest = 0;
  for (const NamedRun& run : runs) {
    ASSERT_TRUE(names.contains(run.name));
    EXPECT_TRUE(lines.contains(names.at(run.name).color));
    lowest = std::max(lowest, names.at(run.name).at.y);
  }
  EXPECT_LT(lowest, names.at("training loss").at.y - 13);
  EXPECT_TRUE(names.contains("epochs"));
}

// What the labels of a drawing cover: a letter is about 0.6 of its size wide.
bool crosses(const Line& line, const Label& label) {
  const Point a = line.points.front(), b = line.points.back();
  const double wide = 0.6 * label.size * static_cast<double>(label.text.size());
  const double left = label.anchor == Anchor::start ? label.at.x : label.at.x - wide;
  const bool beside = a.x < left || a.x > left + wide;
  return !beside && std::min(a.y, b.y) < label.at.y && std::max(a.y, b.y) > label.at.y - 0.7 * label.size;
}

TEST(PlotFigure, LinesOfChangesLeaveOutTheTitles) {
  RunCurves curves;
  curves.seconds = 100;
  curves.loss = curves.speed = curves.accuracy = {{1, 1}, {99, 2}};
  for (double at = 1; at < 20; at += 0.5) curves.changes.push_back({.at = at, .host = "w"});
  int titles = 0;
  const Drawing drawing = draw_run(curves, "run");
  for (const Mark& mark : drawing.marks) {
    const auto* title = std::get_if<Label>(&mark);
    if (!title || title->size != 13) continue;
    ++titles;
    for (const Mark& other : drawing.marks) {
      const auto* line = std::get_if<Line>(&other);
      const bool upright = line && line->points.size() == 2 && line->points[0].x == line->points[1].x;
      EXPECT_FALSE(upright && crosses(*line, *title)) << title->text;
    }
  }
  EXPECT_EQ(titles, 3);
}

TEST(Drawing, ASvgIsKnownByItsFirstLine) {
  const std::string svg = to_svg({1234.5, 678.25, {Label{{0, 0}, "text", 12, 0}}});
  EXPECT_TRUE(is_own_svg(svg));
  EXPECT_TRUE(is_own_svg(std::string_view(svg).substr(0, svg.find('\n'))));
  EXPECT_FALSE(is_own_svg("<?xml version=\"1.0\"?>\n" + svg));
  EXPECT_FALSE(is_own_svg(""));
}

bool holds(const Drawing& drawing, const std::string& text) {
  for (const Mark& mark : drawing.marks) {
    if (const auto* label = std::get_if<Label>(&mark); label && label->text == text) return true;
  }
  return false;
}

TEST(PlotReport, ConfusionNamesClassesAndCountsPictures) {
  const Drawing drawing = draw_confusion(std::vector<std::uint64_t>{7, 1, 0, 0, 5, 0, 2, 0, 3}, {"cat", "dog", "2"});
  EXPECT_TRUE(holds(drawing, "cat  0"));
  EXPECT_TRUE(holds(drawing, "2"));
  EXPECT_TRUE(holds(drawing, "7"));
  EXPECT_FALSE(holds(drawing, "0"));
}

TEST(PlotReport, ConfusionOfManyClassesShowsThoseWithTheMostMistakes) {
  constexpr std::size_t kClasses = 70;
  std::vector<std::uint64_t> counts(kClasses * kClasses);
  counts[68 * kClasses + 69] = 3;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kClasses; ++i) names.push_back("name" + std::to_string(i));
  const Drawing drawing = draw_confusion(counts, names);
  EXPECT_TRUE(holds(drawing, "name69  69"));
  EXPECT_TRUE(holds(drawing, "name68  68"));
  EXPECT_FALSE(holds(drawing, "name67  67"));
  EXPECT_TRUE(holds(drawing, "the 2 of 70 classes with the most mistakes"));
}

TEST(PlotReport, ConfusionOfLongNamesKeepsTheNumbers) {
  constexpr std::size_t kClasses = 140;
  std::vector<std::uint64_t> counts(kClasses * kClasses);
  for (std::size_t label = 1; label < kClasses; ++label) counts[label * kClasses + label - 1] = label;
  const Drawing drawing = draw_confusion(counts, std::vector<std::string>(kClasses, std::string(80, 'x')));
  int rows = 0, columns = 0;
  for (const Mark& mark : drawing.marks) {
    const auto* label = std::get_if<Label>(&mark);
    if (!label) continue;
    rows += label->text.starts_with("xxx") && label->text.ends_with("\u2026  138");
    if (label->text != "138" || label->anchor != Anchor::middle || label->at.y > 100) continue;
    ++columns;
    EXPECT_LE(3 * 0.64 * label->size, 16) << "a column is 18 points wide";
  }
  EXPECT_EQ(rows, 1);
  EXPECT_EQ(columns, 1);
}

TEST(PlotReport, DrawsWithoutASampleOrAMistake) {
  EXPECT_GT(to_image(draw_reliability(std::vector<ReliabilityBin>(15), 0), 1).h, 0);
  EXPECT_GT(to_image(draw_confusion(std::vector<std::uint64_t>(4), {"a", "b"}), 1).h, 0);
  EXPECT_GT(draw_mistakes({}).h, 0);
}

TEST(PlotReport, MistakesArePastedIntoTheirPlaces) {
  data::Image picture{3, 10, 20, {}};
  for (int i = 0; i < 200; ++i) picture.pixels.insert(picture.pixels.end(), {201, 3, 99});
  std::vector<Mistake> mistakes;
  for (int i = 0; i < 7; ++i)
    mistakes.push_back({picture, "cat", "\u00e4 very long name of a class that is cut", 0.5, "3.jpg"});
  const data::Image sheet = draw_mistakes(mistakes);
  int found = 0;
  for (std::size_t i = 0; i < sheet.pixels.size(); i += 3) {
    found += sheet.pixels[i] == 201 && sheet.pixels[i + 1] == 3 && sheet.pixels[i + 2] == 99;
  }
  EXPECT_EQ(found, 7 * 200);
}

}  // namespace
}  // namespace dtrain::plot
