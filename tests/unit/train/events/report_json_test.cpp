#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/train/report_json.hpp>

namespace dtrain::train {
namespace {

const StepReport kStep{.epoch = 3,
                       .step = 7,
                       .steps = 9,
                       .samples = 128,
                       .samples_seen = 5'000'000'000,
                       .loss = 0.1,
                       .accuracy = 1.0 / 3,
                       .top_k_accuracy = 0.5,
                       .learning_rate = 0.05,
                       .time = std::chrono::duration<double>(0.123456789)};

// What it hears, as JSON again.
class Echo final : public EventObserver {
 public:
  void on_event(const ReportEvent& event) override { heard.push_back(to_json(event).dump()); }
  std::vector<std::string> heard;
};

TEST(Reports, SurviveJsonExactly) {
  const EvaluationReport evaluation{.epoch = 1,
                                    .samples = 10,
                                    .loss = 0.7,
                                    .accuracy = 0.2,
                                    .top_k_accuracy = 0.3,
                                    .time = std::chrono::duration<double>(1.5)};
  const EpochReport epoch{.epoch = 1, .loss = 0.3, .accuracy = 0.1, .top_k_accuracy = 0.2, .time = {}};
  const ReportEvent events[] = {kStep,
                                epoch,
                                evaluation,
                                SavedReport{"m/a-0001.safetensors"},
                                WarningReport{"careful"},
                                WarningReport{"by the way", true}};
  Echo echo;
  for (const ReportEvent& event : events) {
    const std::string sent = to_json(event).dump();
    replay(Json::parse(sent, "test"), echo);
    EXPECT_EQ(echo.heard.back(), sent);
  }
  const auto step = std::get<StepReport>(report_from_json(Json::parse(to_json(kStep).dump(), "test")));
  EXPECT_EQ(step.samples_seen, kStep.samples_seen);
  EXPECT_EQ(step.accuracy, kStep.accuracy);
  EXPECT_EQ(step.time, kStep.time);
  EXPECT_EQ(to_json(evaluation).at("seconds").as_number(), 1.5);
}

TEST(Reports, HaveATopKAccuracyWhereTheRunAsksForOne) {
  EXPECT_EQ(to_json(kStep).at("top_k_accuracy").as_number(), 0.5);
  StepReport step = kStep;
  step.top_k_accuracy = kNotAskedFor;
  EvaluationReport evaluation;
  evaluation.top_k = 3;
  evaluation.top_k_accuracy = 0.5;
  EXPECT_EQ(to_json(evaluation).at("top_k").as_integer(), 3);
  const auto back = std::get<EvaluationReport>(report_from_json(to_json(evaluation)));
  EXPECT_EQ(back.top_k, 3);
  EXPECT_EQ(back.top_k_accuracy, 0.5);
  evaluation = {};
  for (const ReportEvent& event : {ReportEvent(step), ReportEvent(EpochReport{}), ReportEvent(evaluation)}) {
    const Json json = to_json(event);
    EXPECT_FALSE(json.find("top_k_accuracy")) << json.dump();
    EXPECT_FALSE(json.find("top_k")) << json.dump();
    EXPECT_EQ(to_json(report_from_json(json)).dump(), json.dump());
  }
  EXPECT_TRUE(std::isnan(std::get<EvaluationReport>(report_from_json(to_json(evaluation))).top_k_accuracy));
}

TEST(Reports, OfADetectorSurviveJsonExactly) {
  StepReport step = kStep;
  step.accuracy = NAN;
  step.parts = {{"classification", 1.0 / 3}, {"bbox_regression", NAN}};
  const auto back = std::get<StepReport>(report_from_json(Json::parse(to_json(step).dump(), "test")));
  EXPECT_TRUE(std::isnan(back.accuracy));
  ASSERT_EQ(back.parts.size(), 2u);
  for (const LossPart& part : back.parts) {
    EXPECT_EQ(std::isnan(part.value), part.name == "bbox_regression");
    if (!std::isnan(part.value)) {
      EXPECT_EQ(part.value, 1.0 / 3);
    }
  }
  EvaluationReport evaluation;
  evaluation.boxes = CocoFigures{.ap = 0.25, .ar100 = 1.0 / 7};
  const auto judged = std::get<EvaluationReport>(report_from_json(Json::parse(to_json(evaluation).dump(), "test")));
  ASSERT_TRUE(judged.boxes);
  EXPECT_EQ(judged.boxes->ap, 0.25);
  EXPECT_EQ(judged.boxes->ar100, 1.0 / 7);
  EXPECT_EQ(judged.boxes->ap_small, -1);
  EXPECT_FALSE(judged.masks);
  evaluation.masks = CocoFigures{.ap75 = 0.5};
  const auto of_masks = std::get<EvaluationReport>(report_from_json(Json::parse(to_json(evaluation).dump(), "test")));
  ASSERT_TRUE(of_masks.masks);
  EXPECT_EQ(of_masks.masks->ap75, 0.5);
  EXPECT_EQ(of_masks.boxes->ap, 0.25);
}

TEST(Reports, ANumberThatIsNotFiniteComesBackAsNaN) {
  EpochReport epoch;
  epoch.loss = INFINITY;
  const ReportEvent back = report_from_json(Json::parse(to_json(epoch).dump(), "test"));
  EXPECT_TRUE(std::isnan(std::get<EpochReport>(back).loss));
}

TEST(Reports, RefuseWhatIsNone) {
  EXPECT_THROW(report_from_json(Json::object({{"event", "party"}})), DataError);
  EXPECT_THROW(report_from_json(Json::object({{"event", "step"}, {"epoch", 1}})), DataError);
  EXPECT_THROW(report_from_json(Json::array()), DataError);
}

TEST(OnlyNews, HearsWhatTwoRanksSayOneAfterTheOtherOnce) {
  Echo echo;
  OnlyNews news(echo);
  const auto step = [](std::uint64_t number) {
    StepReport report = kStep;
    report.step = number;
    return report;
  };
  const ReportEvent told[] = {step(0), SavedReport{"a"}, step(1), WarningReport{"w"}};
  for (const ReportEvent& event : told) news.on_event(event);
  for (const ReportEvent& event : told) news.on_event(event);
  EXPECT_EQ(echo.heard.size(), 4u);
  news.on_event(step(2));
  news.on_event(SavedReport{"a"});
  EXPECT_EQ(echo.heard.size(), 6u);
}

}  // namespace
}  // namespace dtrain::train
