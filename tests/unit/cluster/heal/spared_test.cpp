// What a reconciler leaves alone: machines of a stack that was adopted, and what shut itself down.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster::spared {
namespace {

using namespace std::chrono_literals;
using State = WorkerSeen::State;
using Words = std::vector<std::string>;

const Pool kPool{Market::on_demand, "c5.large", "a", "subnet-a"};

WorkerSeen worker(int number, State state = State::running) {
  return {.id = fmt::format("i-{}", number), .name = worker_name(number), .state = state, .pool = kPool};
}
WorkerSeen adopted(int number) {
  WorkerSeen made = worker(number);
  made.adopted = true;
  return made;
}
WorkerSeen left(int number) {
  WorkerSeen made = worker(number, State::ended);
  made.left_itself = true;
  return made;
}

Observed observed(std::vector<WorkerSeen> workers) { return {.workers = std::move(workers), .pools = {kPool}}; }

HealDecision decide(const Observed& what, const Wish& wish, HealMemory memory = {}, UnixTime now = 1'000s) {
  return reconcile(what, wish, 0, std::move(memory), now);
}

Words actions(const HealDecision& made) {
  Words all;
  for (const HealAction& one : made.actions) {
    all.push_back(fmt::format("{}{}{}", enum_name(kHealActionNames, one.kind), one.id.empty() ? "" : " ", one.id));
  }
  return all;
}

bool says(const HealDecision& made, const std::string& text) {
  for (const std::string& one : made.waits) {
    if (one.find(text) != one.npos) return true;
  }
  return false;
}

TEST(AdoptedMachines, AreNotReplacedHoweverLongTheyAreSick) {
  WorkerSeen sick = adopted(2);
  sick.sick = "its agent is absent";
  const Observed seen = observed({worker(1), sick, worker(3)});
  HealDecision made = decide(seen, {.base = 3});
  made = decide(seen, {.base = 3}, made.memory, 1'000s + kMostSickTime);
  EXPECT_EQ(actions(made), Words{});
  EXPECT_TRUE(says(made, "w0002 is sick (its agent is absent), and no watch ends a machine of a stack"));
}

TEST(AdoptedMachines, AreNotReplacedWhereAllAreSickOrAwsAnnouncesTheirEnd) {
  std::vector<WorkerSeen> all{adopted(1), adopted(2), adopted(3)};
  for (WorkerSeen& one : all) one.sick = "its agent is lost";
  HealDecision made = decide(observed(all), {.base = 3});
  made = decide(observed(all), {.base = 3}, made.memory, 1'000s + kMostSickTime);
  EXPECT_EQ(actions(made), Words{});
  for (WorkerSeen& one : all) one.announced = true;
  EXPECT_EQ(actions(decide(observed(all), {.base = 3})), Words{});
}

TEST(AdoptedMachines, AreNotEndedByAReplacementThatWasBegun) {
  WorkerSeen sick = adopted(2);
  sick.sick = "its agent is lost", sick.replaced_by = "i-9";
  EXPECT_EQ(actions(decide(observed({worker(1), sick, worker(9)}), {.base = 2})), Words{});
}

TEST(AdoptedMachines, GoOnWhenTheBudgetIsSpentAndTheirJobIsStopped) {
  Observed seen = observed({adopted(1), worker(2)});
  seen.spent_budget = "$51.00 of the budget of $50.00";
  const HealDecision made = decide(seen, {.base = 2});
  ASSERT_EQ(actions(made), Words{"close"});
  EXPECT_EQ(made.actions.front().ids, Words{"i-2"});
  EXPECT_TRUE(says(made, "machines of the stack still run and cost money: 1"));
  seen.workers = {adopted(1)};
  EXPECT_EQ(actions(decide(seen, {.base = 1})), Words{});
  seen.workers[0].part = Part::trains;
  EXPECT_EQ(actions(decide(seen, {.base = 1})), Words{"close"});
  seen.workers[0].part = Part::no_job;
  EXPECT_EQ(actions(decide(seen, {.base = 1})), Words{});
}

TEST(LeftMachines, AreNotStartedAgainAlsoWhenAwsForgetsThem) {
  Observed seen = observed({worker(1), left(2), worker(3, State::ended)});
  HealDecision made = decide(seen, {.base = 3});
  ASSERT_EQ(actions(made), Words{"start-workers"});
  EXPECT_EQ(made.actions.front().count, 1) << "what was lost otherwise is started again";
  EXPECT_TRUE(says(made, "shut down from inside, as time limits and a failed boot do: w0002"));
  made = decide(observed({worker(1), worker(3)}), {.base = 3}, made.memory, 5'000s);
  EXPECT_EQ(actions(made), Words{});
  made = decide(observed({worker(1), worker(2), worker(3)}), {.base = 3}, made.memory, 5'020s);
  EXPECT_TRUE(made.memory.left.empty()) << "`up` has started it again";
  EXPECT_EQ(actions(decide(observed({worker(1), worker(3)}), {.base = 3}, made.memory)), Words{"start-workers"});
}

TEST(LeftMachines, AHeadThatShutItselfDownStaysOff) {
  Observed seen = observed({});
  seen.head = Observed::Head::gone, seen.ended_head = "i-0", seen.head_left = true;
  HealDecision made = decide(seen, {.base = 2});
  EXPECT_EQ(actions(made), Words{});
  EXPECT_TRUE(says(made, "the head i-0 has shut itself down"));
  seen.ended_head.clear(), seen.head_left = false;
  EXPECT_EQ(actions(decide(seen, {.base = 2}, made.memory)), Words{}) << "EC2 lists it for an hour";
  seen.head = Observed::Head::alive;
  made = decide(seen, {}, made.memory);
  seen.head = Observed::Head::gone, seen.ended_head = "i-9";
  EXPECT_EQ(actions(decide(seen, {}, made.memory)), Words{"restore-head"}) << "AWS took the next one";
}

TEST(LeftMachines, AHeadThatNoCallShowsMayHaveLeftWhereThereAreTimeLimits) {
  Observed seen = observed({});
  seen.head = Observed::Head::gone;
  EXPECT_EQ(actions(decide(seen, {})), Words{"restore-head"});
  seen.has_time_limit = true;
  EXPECT_EQ(actions(decide(seen, {})), Words{});
  seen.ended_head = "i-0";
  const HealDecision made = decide(seen, {});
  EXPECT_EQ(actions(made), Words{"restore-head"});
  seen.ended_head.clear();
  EXPECT_EQ(actions(decide(seen, {}, made.memory)), Words{"restore-head"}) << "it was seen to be lost";
}

TEST(LeftMachines, AreSeenInTheReasonOfTheirEndAndTheOptionsOfTheCluster) {
  Node node{.name = "w0001", .base = true, .instance_id = "i-1", .state = "terminated"};
  node.end_reason = "Client.InstanceInitiatedShutdown";
  Fleet fleet{.name = "demo", .ending = {node}};
  EXPECT_FALSE(observed_in(fleet, {}, std::nullopt, {}).workers.at(0).left_itself) << "`sudo poweroff`";
  fleet.options["autostop"] = "30m";
  EXPECT_TRUE(observed_in(fleet, {}, std::nullopt, {}).workers.at(0).left_itself);
  fleet.ending[0].role = Role::head;
  const Observed seen = observed_in(fleet, {}, std::nullopt, {});
  EXPECT_EQ(seen.ended_head, "i-1");
  EXPECT_TRUE(seen.head_left && seen.has_time_limit);
}

}  // namespace
}  // namespace dtrain::cluster::spared
