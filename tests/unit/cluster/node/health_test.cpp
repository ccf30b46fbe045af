#include <gtest/gtest.h>

#include <dtrain/cluster/health.hpp>

namespace dtrain::cluster {
namespace {

using State = AgentWord::State;

NodeHealth well() {
  return {.node = {.name = "w0001", .instance_id = "i-1", .state = "running", .private_ip = "10.0.0.2"},
          .system = "ok",
          .instance = "ok",
          .agent = {State::registered}};
}

TEST(Health, EachSourceMayFindSomething) {
  EXPECT_TRUE(well().well());
  NodeHealth one = well();
  one.system = "impaired";
  one.agent = {State::lost, "it is silent"};
  one.clock = ClockOffset{.seconds = 90, .within = 0.1};
  one.checkup = Checkup{.gpu_error = "nvidia-smi hangs"};
  EXPECT_EQ(one.why(),
            "the machine below it is impaired; its agent is lost: it is silent; its clock is +90.0 s off the head's; "
            "nvidia-smi hangs");
}

TEST(Health, WhatNobodyKnowsIsNotHeldAgainstANode) {
  NodeHealth one = well();
  one.agent = {State::unknown, "the head is far"};
  one.system = "initializing";
  EXPECT_TRUE(one.well());
  EXPECT_EQ(one.gpu_text(), "GPUs unknown");
  one.gpus_of_type = 0;
  EXPECT_EQ(one.gpu_text(), "no GPU");
}

TEST(Health, ANodeHasTimeToBoot) {
  NodeHealth one = well();
  one.agent = {State::absent};
  one.boots_still = true;
  EXPECT_TRUE(one.well());
  one.boots_still = false;
  EXPECT_FALSE(one.well());
  one.agent = {State::none};
  EXPECT_TRUE(one.well());
}

TEST(Health, TheHeadsAnswerGoesToItsNodes) {
  Fleet fleet;
  std::vector<NodeHealth> all{well(), well()};
  all[1].node.instance_id = "i-2";
  const Json answer = Json::parse(
      R"({"nodes": [{"instance_id": "i-1", "connected": true}, {"instance_id": "i-2", "connected": false}],
          "failures": [], "waiting": [],
          "reports": {"i-1": {"report": {"devices": 1, "gpus": [], "gpu_error": ""},
                              "clock_offset_seconds": 0.5, "clock_within_seconds": 0.1}}})",
      "a test");
  add_answer_of_head(fleet, answer, all);
  EXPECT_EQ(all[0].why(), "0 of 1 GPUs are seen");
  EXPECT_EQ(all[0].clock->seconds, 0.5);
  EXPECT_EQ(all[1].agent.state, State::lost);
  EXPECT_FALSE(all[1].checkup);
}

TEST(Health, WithoutBeingAskedANodeHasItsLatestReport) {
  std::vector<NodeHealth> all{well()};
  const Json answer = Json::parse(
      R"({"nodes": [{"instance_id": "i-1", "connected": true,
                     "report": {"devices": 0, "gpus": [], "gpu_error": "", "disks": [],
                                "notice": {"final": false, "text": "rebalance recommended at noon"}}}],
          "failures": [], "waiting": []})",
      "a test");
  add_answer_of_head({}, answer, all);
  EXPECT_EQ(all[0].why(), "AWS may soon take it back: rebalance recommended at noon");
  ASSERT_NE(all[0].notice(), nullptr);
  EXPECT_FALSE(all[0].clock);
}

}  // namespace
}  // namespace dtrain::cluster
