#include <gtest/gtest.h>

#include "node/head_state.hpp"

namespace dtrain::cluster {
namespace {

const NodeOrder kOrder{.cluster = "demo", .bundle = "b", .region = "us-east-1"};
const Registry::WallTime kNow{std::chrono::seconds(1000)};

Identity identity(const std::string& id, const std::string& address) {
  return {.account = "1", .region = "us-east-1", .instance_id = id, .address = address, .zone = "a", .type = "c5"};
}

class HeadStateTest : public ::testing::Test {
 protected:
  void announce(const std::string& id, const std::string& address) {
    state.announce(
        Json::object({{"instances", Json::object({{id, Json::object({{"address", address}, {"name", "w0001"}})}})}}));
  }

  HeadState state{identity("i-head", "10.0.0.1"), kOrder};
};

TEST_F(HeadStateTest, AdmitsAnAnnouncedInstanceAndListsTheReasonUntilThen) {
  const Identity node = identity("i-1", "10.0.0.2");
  const auto refused = state.admit(node, "10.0.0.2");
  EXPECT_FALSE(refused.admission.admitted);
  EXPECT_TRUE(refused.is_news);
  EXPECT_FALSE(state.admit(node, "10.0.0.2").is_news) << "the log has one line for the same reason";
  EXPECT_EQ(state.list().at("waiting").as_array().size(), 1u);
  announce("i-1", "10.0.0.2");
  EXPECT_TRUE(state.admit(node, "10.0.0.2").admission.admitted);
  EXPECT_TRUE(state.list().at("waiting").as_array().empty());
}

TEST_F(HeadStateTest, WritesDownAThousandWaitingInstancesAtMost) {
  int lines = 0;
  for (int i = 0; i < 3000; ++i)
    lines += state.admit(identity("i-" + std::to_string(i), "10.0.0.2"), "10.0.0.2").is_news;
  EXPECT_EQ(lines, 1000);
  EXPECT_EQ(state.list().at("waiting").as_array().size(), 1000u);
}

TEST_F(HeadStateTest, RegistersOnlyAnAnnouncedInstanceAtItsOwnAddress) {
  announce("i-1", "10.0.0.2");
  EXPECT_TRUE(state.may_register(identity("i-1", "10.0.0.2"), "10.0.0.2").admitted);
  EXPECT_FALSE(state.may_register(identity("i-1", "10.0.0.2"), "10.0.0.3").admitted) << "another node speaks";
  EXPECT_FALSE(state.may_register(identity("i-2", "10.0.0.2"), "10.0.0.2").admitted);
  EXPECT_TRUE(state.may_register(identity("i-head", "10.0.0.1"), "10.0.0.1").admitted);
}

TEST_F(HeadStateTest, MissesANodeUntilItWasSentAwayAndIsGone) {
  announce("i-1", "10.0.0.2");
  const std::vector<std::string> node{"10.0.0.2"};
  EXPECT_EQ(state.still_there(), node) << "it may still boot";
  state.register_node({.identity = identity("i-head", "10.0.0.1"), .name = "head"}, kNow);
  state.register_node({.identity = identity("i-1", "10.0.0.2"), .name = "w0001"}, kNow);
  state.registry().lose("10.0.0.2", kNow);
  EXPECT_EQ(state.still_there(), node) << "it connects again";
  state.register_node({.identity = identity("i-1", "10.0.0.2"), .name = "w0001"}, kNow);
  state.send_away("10.0.0.2");
  EXPECT_EQ(state.still_there(), node) << "it is on its way";
  state.registry().lose("10.0.0.2", kNow);
  EXPECT_TRUE(state.still_there().empty());
  state.was_silent("10.0.0.2");
  EXPECT_EQ(state.still_there(), node) << "it may not have heard it";
}

TEST_F(HeadStateTest, ForgetsALostNodeThatIsNoLongerAnnounced) {
  EXPECT_TRUE(state.register_node({.identity = identity("i-1", "10.0.0.2"), .name = "i-1"}, kNow));
  EXPECT_FALSE(state.register_node({.identity = identity("i-1", "10.0.0.2"), .name = "i-1"}, kNow));
  announce("i-2", "10.0.0.3");
  EXPECT_EQ(state.registry().nodes().size(), 1u) << "it is connected";
  state.registry().lose("10.0.0.2", kNow);
  announce("i-2", "10.0.0.3");
  EXPECT_TRUE(state.registry().nodes().empty());
}

TEST_F(HeadStateTest, AHeadThatIsStartedAgainKnowsTheInstances) {
  announce("i-1", "10.0.0.2");
  announce("i-2", "10.0.0.3");
  HeadState again{identity("i-head", "10.0.0.1"), kOrder};
  again.announce(state.announced());
  EXPECT_FALSE(again.admit(identity("i-1", "10.0.0.2"), "10.0.0.2").admission.admitted);
  EXPECT_TRUE(again.admit(identity("i-2", "10.0.0.3"), "10.0.0.3").admission.admitted);
}

TEST_F(HeadStateTest, HoldsTheQueueUntilAnAnnouncementSaysNothingOfIt) {
  EXPECT_EQ(state.list().at("hold").as_string(), "");
  state.announce(Json::object({{"instances", Json::object({})}, {"hold", "the cluster is to stop"}}));
  EXPECT_EQ(state.list().at("hold").as_string(), "the cluster is to stop");
  HeadState again{identity("i-head", "10.0.0.1"), kOrder};
  again.announce(state.announced());
  EXPECT_EQ(again.list().at("hold").as_string(), "") << "machines that were started again are to work";
  announce("i-1", "10.0.0.2");
  EXPECT_EQ(state.list().at("hold").as_string(), "");
}

TEST_F(HeadStateTest, RemovesANodeByNameSoThatItMayNotJoinAgain) {
  announce("i-1", "10.0.0.2");
  state.register_node({.identity = identity("i-1", "10.0.0.2"), .name = "w0001"}, kNow);
  EXPECT_EQ(state.remove("w0001"), "10.0.0.2");
  EXPECT_EQ(state.remove("w0001"), std::nullopt);
  EXPECT_FALSE(state.admit(identity("i-1", "10.0.0.2"), "10.0.0.2").admission.admitted);
}

TEST_F(HeadStateTest, TellsNodesTheLaunchTemplateOfTheFirstOne) {
  state.register_node({.identity = identity("i-1", "10.0.0.2"), .name = "w0001", .launch_template = "lt-1"}, kNow);
  EXPECT_EQ(state.facts().launch_template, "lt-1");
  EXPECT_EQ(state.facts().workers, std::vector<std::string>{"10.0.0.2"});
  EXPECT_EQ(state.list().at("nodes").as_array().at(0).at("since").as_integer(), 1000);
}

TEST(CheckRound, EndsWithTheLastAnswer) {
  CheckRound round;
  round.ask("i-1", 0);
  round.ask("i-2", 0);
  const Json answer = Json::object({{"time_ns", 5}, {"took_ns", 2}, {"report", "fine"}});
  round.hear("i-1", answer, 10);
  EXPECT_FALSE(round.is_over());
  round.hear("i-3", answer, 10);
  round.hear("i-2", answer, 10);
  EXPECT_TRUE(round.is_over());
  EXPECT_EQ(round.reports().as_object().size(), 2u);
}

TEST(CheckRound, DoesNotWaitForANodeThatIsLost) {
  CheckRound round;
  round.ask("i-1", 0);
  round.lose("i-2");
  EXPECT_FALSE(round.is_over());
  round.lose("i-1");
  EXPECT_TRUE(round.is_over());
}

TEST(ForwardedStarts, EndWithTheirAnswerOrTheirNode) {
  ForwardedStarts starts;
  const int one = 0, other = 0;  // connections, by their addresses
  const auto at = [](const int& node) { return reinterpret_cast<const net::Channel*>(&node); };
  const std::int64_t first = starts.add({at(one), "h1", {}, Json(1)});
  starts.add({at(other), "h2", {}, Json(2)});
  starts.add({at(one), "h1", {}, Json(3)});
  EXPECT_EQ(starts.take(first).value().id, Json(1));
  EXPECT_FALSE(starts.take(first)) << "it was answered";
  const auto left = starts.take_all_of(at(one));
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].id, Json(3));
  EXPECT_TRUE(starts.take_all_of(at(one)).empty());
  EXPECT_EQ(starts.take_all_of(at(other)).size(), 1u);
}

}  // namespace
}  // namespace dtrain::cluster
