#include <gtest/gtest.h>

#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/head_guard.hpp>
#include <dtrain/cluster/power.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
using Head = HeadSeen::Head;

constexpr UnixTime kBegin{1'000'000};
constexpr std::chrono::seconds kHeadPatience{180};

HeadSeen ended() { return {.head = Head::ended, .id = "i-head", .workers = {"i-1", "i-2", "i-3"}}; }

// What `me` decides when EC2 has shown the same for `time`.
HeadDecision decide_after(const HeadSeen& seen, const std::string& me, std::chrono::seconds time) {
  HeadMemory memory = decide_head(seen, me, kHeadPatience, {}, kBegin).memory;
  return decide_head(seen, me, kHeadPatience, memory, kBegin + time);
}

std::string why(const HeadSeen& seen, std::chrono::seconds time = 1h) {
  const HeadDecision decision = decide_after(seen, "i-1", time);
  EXPECT_FALSE(decision.start) << decision.why;
  return decision.why;
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(HeadDecision, TheFirstWorkerStartsAHeadThatIsGoneForLong) {
  EXPECT_FALSE(decide_after(ended(), "i-1", kHeadPatience - 1s).start);
  const HeadDecision decision = decide_after(ended(), "i-1", kHeadPatience);
  EXPECT_TRUE(decision.start);
  EXPECT_EQ(decision.why, "the head i-head has ended, says EC2, 3:00 ago, so a new one takes its address");
  EXPECT_EQ(decision.memory.lost, "i-head");
}

TEST(HeadDecision, TheOthersFollowInTurn) {
  EXPECT_FALSE(decide_after(ended(), "i-2", kHeadPatience + kHeadTurn - 1s).start);
  EXPECT_TRUE(has(decide_after(ended(), "i-2", kHeadPatience).why, "unless another one does"));
  EXPECT_TRUE(decide_after(ended(), "i-2", kHeadPatience + kHeadTurn).start);
  EXPECT_TRUE(decide_after(ended(), "i-3", kHeadPatience + 2 * kHeadTurn).start);
  EXPECT_FALSE(decide_after(ended(), "i-4", 24h).start);
}

TEST(HeadDecision, AHeadThatRunsIsLeftAloneHoweverLongItIsUnreachable) {
  HeadSeen seen = ended();
  seen.head = Head::alive;
  EXPECT_TRUE(has(why(seen, 24h), "i-head runs, says EC2, and cannot be reached from here"));
}

TEST(HeadDecision, AHeadThatRanMeanwhileBeginsTheTimeAnew) {
  HeadSeen alive = ended();
  alive.head = Head::alive;
  HeadMemory memory = decide_head(ended(), "i-1", kHeadPatience, {}, kBegin).memory;
  memory = decide_head(alive, "i-1", kHeadPatience, memory, kBegin + 100s).memory;
  memory = decide_head(ended(), "i-1", kHeadPatience, memory, kBegin + 110s).memory;
  EXPECT_FALSE(decide_head(ended(), "i-1", kHeadPatience, memory, kBegin + 200s).start);
  EXPECT_TRUE(decide_head(ended(), "i-1", kHeadPatience, memory, kBegin + 290s).start);
}

TEST(HeadDecision, OneThatIsEndingStillHasItsAddress) {
  HeadSeen seen = ended();
  seen.head = Head::ending;
  EXPECT_TRUE(has(why(seen), "still has its address"));
}

TEST(HeadDecision, WhatItsOwnerStoppedStaysSo) {
  HeadSeen seen = ended();
  seen.head = Head::stopped;
  EXPECT_TRUE(has(why(seen), "only its owner"));
  seen = ended();
  seen.stopped = true;
  EXPECT_TRUE(has(why(seen), "only its owner"));
}

TEST(HeadDecision, AHeadThatShutItselfDownStaysOffAlsoWhenEc2ForgetsIt) {
  HeadSeen seen = ended();
  seen.shut_down_from_inside = true;
  const HeadDecision first = decide_head(seen, "i-1", kHeadPatience, {}, kBegin);
  EXPECT_TRUE(has(first.why, "has shut itself down"));
  seen = {.head = Head::gone, .workers = {"i-1"}};
  const HeadDecision later = decide_head(seen, "i-1", kHeadPatience, first.memory, kBegin + 2h);
  EXPECT_TRUE(has(later.why, "has shut itself down")) << later.why;
}

TEST(HeadDecision, AHeadThatNobodySawEndIsStartedOnlyWhereNoneEndsItself) {
  HeadSeen seen{.head = Head::gone, .workers = {"i-1"}};
  EXPECT_TRUE(decide_after(seen, "i-1", kHeadPatience).start);
  seen.may_end_itself = true;
  EXPECT_TRUE(has(why(seen), "may have ended itself"));
}

TEST(HeadDecision, NothingIsStartedInAClusterThatGoesOrIsSpentOrIsKeptByAnother) {
  HeadSeen seen = ended();
  seen.complete = false;
  EXPECT_TRUE(has(why(seen), "made or removed"));
  seen = ended();
  seen.spent_budget = "$50.00 of the budget of $50.00";
  EXPECT_TRUE(has(why(seen), "$50.00 of the budget of $50.00 are spent"));
  seen = ended();
  seen.keeper = "office.1";
  EXPECT_TRUE(has(why(seen), "office.1 keeps the cluster"));
}

TEST(HeadDecision, FailuresAreRepeatedMoreAndMoreSeldom) {
  HeadMemory memory = decide_head(ended(), "i-1", kHeadPatience, {}, kBegin).memory;
  UnixTime now = kBegin + kHeadPatience;
  for (const auto pause : {30s, 60s, 120s, 240s, 480s, 960s, 1800s, 1800s}) {
    const HeadDecision decision = decide_head(ended(), "i-1", kHeadPatience, memory, now);
    ASSERT_TRUE(decision.start) << decision.why;
    memory = after_start(decision.memory, false, now);
    EXPECT_FALSE(decide_head(ended(), "i-1", kHeadPatience, memory, now + pause - 1s).start);
    now += pause;
  }
  memory = after_start(memory, true, now);
  EXPECT_FALSE(decide_head(ended(), "i-1", kHeadPatience, memory, now + kHeadShows - 1s).start);
  EXPECT_TRUE(decide_head(ended(), "i-1", kHeadPatience, memory, now + kHeadShows).start);
}

TEST(HeadDecision, TheNextHeadThatIsLostIsAnotherCase) {
  HeadMemory memory = after_start(decide_after(ended(), "i-1", kHeadPatience).memory, false, kBegin);
  HeadSeen next = ended();
  next.id = "i-next";
  const HeadDecision decision = decide_head(next, "i-1", kHeadPatience, memory, kBegin + 1h);
  EXPECT_FALSE(decision.start);
  EXPECT_EQ(decision.memory.lost, "i-next");
  EXPECT_EQ(decision.memory.failures, 0);
}

Node head_machine(const std::string& name, const std::string& state) {
  Node node{.name = name, .role = name == "head" ? Role::head : Role::worker, .instance_id = "i-" + name};
  node.state = state;
  return node;
}

Fleet fleet_without_head() {
  Fleet fleet{.name = "demo", .group = SecurityGroup{.id = "sg-1"}};
  fleet.launch_template = fleet.head_template = LaunchTemplate{.id = "lt-1"};
  fleet.nodes = {head_machine("w0001", "pending"), head_machine("w0002", "running"), head_machine("w0003", "running"),
                 head_machine("i-w0004", "running")};
  fleet.nodes[3].instance_id = fleet.nodes[3].name;
  fleet.nodes[2].elastic_status = "REMOVAL_QUEUED";
  return fleet;
}

TEST(HeadSeen, TakesTurnsOfNamedWorkersThatRunAndStay) {
  EXPECT_EQ(head_seen_in(fleet_without_head(), "w0002", kBegin).workers, std::vector<std::string>{"i-w0002"});
}

TEST(HeadSeen, KnowsTheHeadThatEndedLast) {
  Fleet fleet = fleet_without_head();
  EXPECT_EQ(head_seen_in(fleet, "w0002", kBegin).head, Head::gone);
  fleet.ending = {head_machine("head", "terminated"), head_machine("head", "terminated")};
  fleet.ending[0].launch_time = "2026-01-31T12:00:00.000Z";
  fleet.ending[1].launch_time = "2026-01-31T13:00:00.000Z";
  fleet.ending[1].instance_id = "i-second";
  HeadSeen seen = head_seen_in(fleet, "w0002", kBegin);
  EXPECT_EQ(seen.head, Head::ended);
  EXPECT_EQ(seen.id, "i-second");
  EXPECT_FALSE(seen.shut_down_from_inside);
  fleet.ending[1].end_reason = "Client.InstanceInitiatedShutdown";
  EXPECT_TRUE(head_seen_in(fleet, "w0002", kBegin).shut_down_from_inside);
  fleet.ending[1].state = "shutting-down";
  EXPECT_EQ(head_seen_in(fleet, "w0002", kBegin).head, Head::ending);
  fleet.nodes.insert(fleet.nodes.begin(), head_machine("head", "pending"));
  EXPECT_EQ(head_seen_in(fleet, "w0002", kBegin).head, Head::alive);
  fleet.nodes.front().state = "stopping";
  EXPECT_EQ(head_seen_in(fleet, "w0002", kBegin).head, Head::stopped);
}

TEST(HeadSeen, ReadsTheTagsAndOptionsOfTheCluster) {
  Fleet fleet = fleet_without_head();
  fleet.group->tags = {{tag::kHealer, lease_text({"office.1", kBegin})},
                       {tag::kStopped, "2026-01-31T12:00:00Z"},
                       {tag::kWish, wish_text({.base = 2, .budget = 50})},
                       {tag::kSpent, spending_text({.dollars = 51, .at = kBegin})}};
  fleet.options = {{"ttl", "720m"}};
  const HeadSeen seen = head_seen_in(fleet, "w0002", kBegin + 1s);
  EXPECT_EQ(seen.keeper, "office.1");
  EXPECT_TRUE(seen.stopped && seen.complete && seen.may_end_itself);
  EXPECT_EQ(seen.spent_budget, "$51.00 of the budget of $50.00");
  EXPECT_EQ(head_seen_in(fleet, "w0002", kBegin + kLeaseTime).keeper, "");
  fleet.options = {{"autostop", "off"}};
  fleet.head_template.reset();
  const HeadSeen without = head_seen_in(fleet, "w0002", kBegin);
  EXPECT_FALSE(without.complete || without.may_end_itself);
}

TEST(HeadPatience, IsLongerThanTheLeaseOfAHeadThatWasLost) { EXPECT_GE(kLeastHeadPatience, kLeaseTime); }

}  // namespace
}  // namespace dtrain::cluster
