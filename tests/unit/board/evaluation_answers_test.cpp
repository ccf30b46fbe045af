#include "evaluation_answers.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <dtrain/base/files.hpp>
#include <dtrain/net/ssh.hpp>

#include "common/temporary_folder.hpp"
#include "reply.hpp"

namespace dtrain::board {
namespace {

class Reports : public ::testing::Test {
 protected:
  void add(const std::string& name) { write(name + "/per_class.csv", "class,f1\na,1\n"); }
  void write(const std::string& name, const std::string& text) {
    const Path path = scratch_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomic(path, text);
  }
  std::string chosen(const std::string& asked = {}) const {
    Json answer = Json::object({});
    add_report(answer, {(scratch_.path() / "a-run").string(), {}}, *parse_target("/?report=" + asked));
    return answer.at("report").is_string() ? answer.at("report").as_string() : "none";
  }

  TemporaryFolder scratch_;
};

TEST_F(Reports, OfAnotherRunInTheFolderAreShownOnDemandAlone) {
  write("b-run/steps.jsonl", "");
  add("b-report");
  write("c-0001.json", "{}");
  add("c-report");
  EXPECT_EQ(chosen(), "none");
  EXPECT_EQ(chosen("b-report"), "b-report");
  add("a-report");
  EXPECT_EQ(chosen(), "a-report");
}

TEST_F(Reports, OfAnyOtherNameAreTakenForThoseOfTheRun) {
  add("results");
  EXPECT_EQ(chosen(), "results");
}

TEST_F(Reports, HaveNothingThatIsReadThroughALink) {
  const RunPlace run{(scratch_.path() / "a-run").string(), {}};
  const auto picture = [&](const std::string& name) {
    return picture_of_report(run, *parse_target("/?report=a-report&name=" + name)).body;
  };
  add("a-report");
  write("a-report/own.png", "a picture");
  write("secret", "a,b\nsecret,1\n");
  std::filesystem::create_symlink(scratch_ / "secret", scratch_ / "a-report/link.png");
  std::filesystem::create_symlink(scratch_ / "secret", scratch_ / "a-report/confusion.csv");
  std::filesystem::create_symlink(scratch_ / "secret", scratch_ / "a-report/predictions.csv");
  ASSERT_EQ(::mkfifo((scratch_ / "a-report/pipe.png").c_str(), 0600), 0);
  Json answer = Json::object({});
  add_report(answer, run, *parse_target("/?report=a-report"));
  EXPECT_EQ(answer.at("pictures").dump(), R"(["own.png"])");
  EXPECT_TRUE(answer.at("matrix").is_null());
  EXPECT_FALSE(answer.at("curves").as_bool());
  EXPECT_EQ(picture("own.png"), "a picture");
  for (const char* name : {"link.png", "pipe.png"}) EXPECT_THROW(picture(name), Missing) << name;
  EXPECT_THROW(curves_of_report(run, *parse_target("/?report=a-report")), Missing);
}

TEST_F(Reports, AreNoLinks) {
  add("elsewhere/b-report");
  std::filesystem::create_directory_symlink(scratch_ / "elsewhere/b-report", scratch_ / "a-report");
  std::filesystem::create_directory(scratch_ / "c-report");
  std::filesystem::create_symlink(scratch_ / "elsewhere/b-report/per_class.csv", scratch_ / "c-report/per_class.csv");
  EXPECT_EQ(chosen("a-report"), "none");
  EXPECT_EQ(chosen("c-report"), "none");
  EXPECT_EQ(chosen(), "none");
}

TEST(ValidationFigures, NameTheBestGuessesThatTheRunAskedFor) {
  const Json named = Json::parse(R"({"event":"evaluation","loss":null,"top_k":3,"top_k_accuracy":0.75})", "an event");
  EXPECT_EQ(validation_figures(named).dump(), R"({"loss":null,"top_3_accuracy":0.75})");
  const Json old = Json::parse(R"({"event":"evaluation","top_k_accuracy":0.75})", "an event of an earlier version");
  EXPECT_EQ(validation_figures(old).dump(), R"({"top_k_accuracy":0.75})");
}

TEST_F(Reports, AreWrittenByACommandThatAShellTakes) {
  Json answer = Json::object({});
  add_report(answer, {(scratch_.path() / "it's-run").string(), {}}, *parse_target("/"));
  const std::string quoted = net::shell_quoted((scratch_.path() / "it's").string());
  EXPECT_EQ(answer.at("hint").as_string().find("`dtrain eval " + quoted + " --report "), 0u) << answer.dump();
}

TEST(ValidationFigures, OfADetectorAreAveragePrecisions) {
  const Json detector = Json::parse(
      R"({"event":"evaluation","epoch":0,"loss":null,"accuracy":0.25,"top_k_accuracy":0.5,"boxes":{"ap":0.25,"ap50":0.5}})",
      "an event");
  EXPECT_EQ(validation_figures(detector).dump(), R"({"box_ap":0.25,"box_ap50":0.5})");
  const Json classifier = Json::parse(R"({"event":"evaluation","loss":0.5,"accuracy":0.75,"seconds":1})", "an event");
  EXPECT_EQ(validation_figures(classifier).dump(), R"({"loss":0.5,"accuracy":0.75})");
}

}  // namespace
}  // namespace dtrain::board
