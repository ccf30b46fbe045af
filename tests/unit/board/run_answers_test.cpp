#include "run_answers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evaluation_answers.hpp"

namespace dtrain::board {
namespace {

// One file, as far as it is still there.
class OneFile final : public Files {
 public:
  explicit OneFile(std::string text) : text_(std::move(text)) {}
  FoundRuns find_runs() override { return {}; }
  std::optional<std::uint64_t> size(const std::string&) override { return text_.size(); }
  std::string version(const std::string&) override { return "1"; }
  std::string read(const std::string&, std::uint64_t from, std::uint64_t most) override {
    return from < text_.size() ? text_.substr(from, most) : std::string();
  }
  std::vector<ListedFile> list(const std::string&) override { return {}; }
  bool is_local() const override { return true; }

 private:
  const std::string text_;
};

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format(
        "{{\"time\":\"2026-01-31T{:02}:{:02}:{:02}.000000Z\",\"epoch\":0,\"step\":{},\"steps\":9000,\"loss\":{}}}\n",
        i / 3600, i / 60 % 60, i % 60, i, 0.1 * i);
  }
  return text;
}

Json series(const std::string& text, Files& files, const std::string& window) {
  Run run("/m/a-run", "a");
  Run::News news;
  news.steps.lines = text;
  run.apply(std::move(news));
  return Json::parse(Series(run, *parse_target("/api/series?" + window)).answer(files).body, "the answer");
}

TEST(Series, ReadsTheLinesOfANarrowWindow) {
  const std::string text = lines(3000);
  OneFile file(text);
  const Json answer = series(text, file, "from=1001&to=1003");
  EXPECT_EQ(answer.at("rows").as_integer(), 3000);
  EXPECT_EQ(answer.at("x").as_array().size(), 5u);
  EXPECT_EQ(answer.at("columns").at("loss").at("mean").as_array()[1].as_number(), 0.1 * 1000);
}

TEST(Series, HasTheAveragePrecisionOfMasksWhereThereIsOne) {
  board::Run run("/m/a-run", "a");
  board::Run::News news;
  news.steps.lines = lines(3);
  constexpr const char* kEvaluation =
      R"({{"time":"2026-01-31T00:00:0{0}.000000Z","event":"evaluation","epoch":{0},"loss":null,"accuracy":0.5,)"
      R"("boxes":{{"ap":0.5,"ap50":0.75,"ap75":0.25}}{1}}})";
  news.events.lines =
      fmt::format(kEvaluation, 0, "") + "\n" + fmt::format(kEvaluation, 1, R"(,"masks":{"ap":0.375,"ap50":-1})") + "\n";
  run.apply(std::move(news));
  OneFile file(lines(3));
  const Json answer =
      Json::parse(Series(run, *parse_target("/api/series?axis=epochs")).answer(file).body, "the answer");
  const Json::Array& points = answer.at("validations").as_array();
  ASSERT_EQ(points.size(), 2u);
  EXPECT_FALSE(points[0].find("mask_ap"));
  EXPECT_EQ(points[1].at("mask_ap").as_number(), 0.375);
  const Json table = validations_of(run);
  EXPECT_FALSE(table.at("validations").as_array().at(0).find("masks"));
  EXPECT_EQ(table.at("validations").as_array().at(0).at("boxes").dump(), R"({"ap":0.5,"ap50":0.75})");
  EXPECT_EQ(table.at("validations").as_array().at(1).at("masks").at("ap50").as_number(), -1);
}

TEST(Series, HasTheAccuracyAmongTheGuessesThatWereAskedFor) {
  board::Run run("/m/a-run", "a");
  board::Run::News news;
  news.steps.lines = lines(3);
  news.events.lines =
      R"({"time":"2026-01-31T00:00:01.000000Z","event":"evaluation","epoch":0,"loss":1,"accuracy":0.5,"top_k":5,)"
      R"("top_k_accuracy":0.75})"
      "\n";
  run.apply(std::move(news));
  OneFile file(lines(3));
  const Json answer = Json::parse(Series(run, *parse_target("/api/series")).answer(file).body, "the answer");
  EXPECT_EQ(answer.at("validations").as_array().at(0).at("top_5_accuracy").as_number(), 0.75);
  EXPECT_EQ(validations_of(run).at("validations").as_array().at(0).at("top_5_accuracy").as_number(), 0.75);
}

TEST(Series, ShowsWhatIsInMemoryWhereTheFileIsAway) {
  OneFile gone("");
  const Json answer = series(lines(3000), gone, "from=1001&to=1003");
  EXPECT_EQ(answer.at("rows").as_integer(), 3000);
  ASSERT_FALSE(answer.at("x").as_array().empty());
  EXPECT_GE(answer.at("x").as_array().back().as_number(), 1003);
}

TEST(Series, HasValidationsAtTheLastStepOfTheirEpoch) {
  board::Run run("/m/job", "job");
  Run::News news;
  const int steps_of_epoch[] = {30, 30, 20, 15};
  std::string steps;
  for (int epoch = 0; epoch < 4; ++epoch) {
    const int count = steps_of_epoch[epoch];
    steps +=
        fmt::format("{{\"time\":\"2026-01-31T00:00:0{}.000000Z\",\"epoch\":{},\"step\":{},\"steps\":{},\"loss\":1}}\n",
                    epoch, epoch, count - 1, count);
    news.events.lines += fmt::format(
        R"({{"time":"2026-01-31T00:00:0{0}.500000Z","event":"evaluation","epoch":{0},"accuracy":0.5,"loss":1}})"
        "\n",
        epoch);
  }
  news.steps.lines = steps;
  run.apply(std::move(news));
  OneFile file(steps);
  const Json answer = Json::parse(Series(run, *parse_target("/api/series")).answer(file).body, "the answer");
  EXPECT_EQ(answer.at("x").dump(), "[30,60,80,95]");
  std::vector<double> places;
  for (const Json& validation : answer.at("validations").as_array()) places.push_back(validation.at("x").as_number());
  EXPECT_EQ(places, (std::vector<double>{30, 60, 80, 95}));
}

TEST(Series, HasChangesOfMembersOnTheAxisOfTime) {
  board::Run run("/m/job", "job");
  Run::News news;
  news.steps.lines = lines(30);
  news.events.lines =
      R"({"time":"2026-01-31T00:00:10.000000Z","event":"generation","workers":3,"reason":"w3 joined"})"
      "\n"
      R"({"time":"2026-01-31T00:00:20.000000Z","event":"evaluation","epoch":0,"loss":null,"boxes":{"ap":0.5,"ap50":0.75}})"
      "\n";
  run.apply(std::move(news));
  OneFile file(lines(30));
  const auto answer = [&](const std::string& axis) {
    return Json::parse(Series(run, *parse_target("/api/series?axis=" + axis)).answer(file).body, "the answer");
  };
  EXPECT_EQ(answer("time").at("changes").dump(), R"([{"x":10.0,"workers":3.0,"reason":"w3 joined"}])");
  EXPECT_EQ(answer("steps").at("changes").dump(), "[]");
  EXPECT_EQ(answer("time").at("validations").as_array()[0].at("box_ap").as_number(), 0.5);
}

}  // namespace
}  // namespace dtrain::board
