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
