#include <gtest/gtest.h>

#include <dtrain/cluster/agents.hpp>

namespace dtrain::cluster {
namespace {

using State = AgentWord::State;

Json list_of(Json nodes, Json failures, Json waiting) {
  return Json::object(
      {{"nodes", std::move(nodes)}, {"failures", std::move(failures)}, {"waiting", std::move(waiting)}});
}

Json known(const char* id, bool connected) { return Json::object({{"instance_id", id}, {"connected", connected}}); }

const Node kWorker{.name = "w0001", .instance_id = "i-1", .private_ip = "10.0.0.2"};

TEST(Agents, AreWhatTheHeadListsOfThem) {
  const Json none = Json::array();
  const Json failed = Json::object({{"address", "10.0.0.2"}, {"stage", "prepare"}, {"exit_code", 7}});
  const Json waiting = Json::object({{"instance_id", "i-1"}, {"reason", "nobody announced it"}});
  const auto word = [](const Json& list) { return agent_of(kWorker, Fleet{}, list); };
  EXPECT_EQ(word(list_of(Json::array({known("i-1", true)}), none, none)).state, State::registered);
  EXPECT_EQ(word(list_of(Json::array({known("i-1", false)}), none, none)).state, State::lost);
  EXPECT_EQ(word(list_of(Json::array({known("i-2", true)}), none, none)).state, State::absent);
  EXPECT_EQ(word(list_of(none, Json::array({failed}), none)).text(), "failed: prepare ended with exit code 7");
  EXPECT_EQ(word(list_of(none, none, Json::array({waiting}))).text(), "waiting: nobody announced it");
  // It came after it had failed once.
  EXPECT_EQ(word(list_of(Json::array({known("i-1", true)}), Json::array({failed}), none)).text(), "registered");
}

TEST(Agents, ABootThatFailedOfAMachineThatIsGoneIsNoneOfTheFleet) {
  const Json failed = Json::object({{"address", "10.0.0.2"}, {"stage", "prepare"}, {"exit_code", 7}});
  const Json gone = Json::object({{"address", "10.0.0.9"}, {"stage", "bundle"}, {"exit_code", 1}});
  const Json list = list_of(Json::array(), Json::array({gone, failed}), Json::array());
  const auto found = failed_boots(Fleet{.nodes = {kWorker}}, list);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().at("stage").as_string(), "prepare");
  EXPECT_TRUE(failed_boots(Fleet{}, list).empty());
}

TEST(Agents, AreNotAwaitedWhereThereAreToBeNone) {
  const Json empty = list_of(Json::array(), Json::array(), Json::array());
  const Node head{.name = "head", .role = Role::head, .instance_id = "i-0"};
  EXPECT_EQ(agent_of(head, Fleet{}, empty).state, State::absent);
  EXPECT_EQ(agent_of(head, Fleet{.options = {{"head-only", "yes"}}}, empty).state, State::none);
  EXPECT_EQ(agent_of(kWorker, Fleet{.emr = EmrCluster{.id = "j-1"}}, empty).state, State::none);
}

}  // namespace
}  // namespace dtrain::cluster
