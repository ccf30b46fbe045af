#include "job/spec/job_client.hpp"

#include <gtest/gtest.h>

namespace dtrain::job {
namespace {

Json list_with(const std::string& host, const std::string& state) {
  return Json::object({{"hosts", Json::array({Json::object({{"name", host}, {"state", state}})})}});
}

TEST(JobClient, FindsWhatAHostIsInTheCoordinatorsList) {
  for (const auto& [phase, name] : elastic::kHostPhaseNames)
    EXPECT_EQ(phase_in(list_with("w1", std::string(name)), "w1"), phase);
  EXPECT_EQ(phase_in(list_with("w1", "member"), "w2"), std::nullopt);
}

TEST(JobClient, RefusesAStateOfAHostThatItDoesNotKnow) {
  EXPECT_THROW((void)phase_in(list_with("w1", "asleep"), "w1"), DataError);
}

Json advised(const std::string& reason, const std::string& next, const Path& folder, const std::string& forget = "") {
  const Json host = Json::object({{"name", "h3"}, {"reason", reason}, {"next", next}, {"forget_key", forget}});
  return list_for_user(Json::object({{"hosts", Json::array({host})}}), {folder}).at("hosts").as_array().at(0);
}

TEST(JobClient, AdviceNamesTheFolderAndFlags) {
  EXPECT_EQ(advised("failed", "dtrain hosts remove h3", "a b").at("next").as_string(),
            "dtrain hosts remove h3 --job-dir 'a b'");
  EXPECT_EQ(advised("failed", "dtrain hosts remove h3", ".").at("next").as_string(), "dtrain hosts remove h3");
  EXPECT_EQ(advised("too few for setting 'min-workers'", "", "a").at("reason").as_string(),
            "too few for --min-workers");
  const Json list = list_for_user(
      Json::object({{"hosts", Json::array()}, {"state_reason", "fewer than setting 'min-workers'"}}), {"a"});
  EXPECT_EQ(list.at("state_reason").as_string(), "fewer than --min-workers");
}

TEST(JobClient, TheAdviceForAChangedHostKeyIsToForgetTheOldOne) {
  const std::string remove = "dtrain hosts remove h3", forget = "ssh-keygen -R '[h3]:2222' -f '/a (b)/known_hosts'";
  EXPECT_EQ(advised("failed", remove, "job", forget).at("next").as_string(),
            forget + "; or " + remove + " --job-dir job");
  EXPECT_EQ(advised("failed", "", "job", forget).at("next").as_string(), forget);
  EXPECT_EQ(advised("failed (ssh-keygen -R h3)", remove, ".").at("next").as_string(), remove) << "a reason is no value";
}

TEST(JobClient, NamesTheProcessThatHoldsAFolderWhereItIsKnown) {
  const Error known = job_runs_there({"job"}, CoordinatorFile{.pid = 4711, .host = "h1"});
  EXPECT_STREQ(known.what(), "job: a job runs there already (process 4711 on h1)");
  EXPECT_NE(known.hint().find("`dtrain stop --job-dir job` ends it"), std::string::npos) << known.hint();
  EXPECT_NE(known.hint().find("`dtrain hosts list --job-dir job`"), std::string::npos) << known.hint();
  EXPECT_STREQ(job_runs_there({"job"}, std::nullopt).what(), "job: a job runs there already");
}

TEST(JobClient, FindsWhatTheCoordinatorSaysOfTheHostFile) {
  const Json answer = Json::object({{"ok", true}, {"problems", Json::array({"it lacked w1", "line 2: no host"})}});
  EXPECT_EQ(problems_in(answer), (std::vector<std::string>{"it lacked w1", "line 2: no host"}));
  EXPECT_TRUE(problems_in(Json::object({{"ok", true}})).empty());
}

TEST(JobClient, NamesNoOptionThatTheCommandOfTheLostJobLacks) {
  EXPECT_NE(how_to_go_on({.runs_program = false}).find("--resume"), std::string::npos);
  const std::string program = how_to_go_on({.runs_program = true});
  EXPECT_EQ(program.find("--resume"), std::string::npos);
  EXPECT_NE(program.find("run the same command again"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::job
