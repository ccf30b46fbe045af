// What a reconciler leaves alone: machines of a stack that was adopted, and what shut itself down. What it does for the
// latter where there are no time limits, and for all machines that end soon after their start, it does ever more
// seldom.
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
  EXPECT_EQ(observed_in(fleet, {}, std::nullopt, {}).workers.at(0).end,
            "w0001 (i-1) has ended: Client.InstanceInitiatedShutdown");
  fleet.options["autostop"] = "30m";
  EXPECT_TRUE(observed_in(fleet, {}, std::nullopt, {}).workers.at(0).left_itself);
  fleet.ending[0].role = Role::head;
  const Observed seen = observed_in(fleet, {}, std::nullopt, {});
  EXPECT_EQ(seen.ended_head, "i-1");
  EXPECT_TRUE(seen.head_left && seen.has_time_limit);
  EXPECT_EQ(seen.head_end, "w0001 (i-1) has ended: Client.InstanceInitiatedShutdown");
}

// A worker that a reconciler started at that time, and whose boot failed.
WorkerSeen failed_boot(int number, UnixTime began) {
  WorkerSeen made = worker(number, State::ended);
  made.healed = true, made.began = began, made.end = made.name + " has ended: no boot";
  return made;
}

HealMemory with_a_start(HealMemory memory, UnixTime now) {
  return after_attempts(std::move(memory), {{.pool = kPool, .wanted = 1, .got = 1}}, now);
}

TEST(FailedBoots, MakeTheirPoolRestEachTimeForTwiceAsLong) {
  Observed seen = observed({worker(1), failed_boot(2, 900s)});
  HealDecision made = decide(seen, {.base = 2});
  EXPECT_EQ(actions(made), Words{});
  EXPECT_TRUE(says(made,
                   "1 of 2 workers are there, but machines end soon after their start, or no pool had one "
                   "(w0002 has ended: no boot)"));
  made = decide(seen, {.base = 2}, made.memory, 1'000s + kFirstPoolPause);
  ASSERT_EQ(actions(made), Words{"start-workers"});
  EXPECT_EQ(made.actions.front().reason, "1 of 2 workers are there; w0002 has ended: no boot");
  HealMemory memory = with_a_start(made.memory, 1'030s);
  seen.workers.push_back(failed_boot(3, 1'031s));
  made = decide(seen, {.base = 2}, memory, 1'100s);
  EXPECT_EQ(actions(made), Words{});
  EXPECT_EQ(actions(decide(seen, {.base = 2}, made.memory, 1'099s + 2 * kFirstPoolPause)), Words{});
  EXPECT_EQ(actions(decide(seen, {.base = 2}, made.memory, 1'100s + 2 * kFirstPoolPause)), Words{"start-workers"});
}

TEST(FailedBoots, OfOneStartCountOnceAndThePauseHasALimit) {
  UnixTime now(1'000);
  HealMemory memory = decide(observed({failed_boot(2, 900s), failed_boot(3, 901s)}), {.base = 2}).memory;
  EXPECT_EQ(memory.rests.at(kPool.text()).failures, 1);
  for (int number = 4; number < 20; ++number) {
    now = memory.rests.at(kPool.text()).until;
    memory = with_a_start(std::move(memory), now);
    now += 120s;
    memory = decide(observed({failed_boot(number, now - 100s)}), {.base = 2}, std::move(memory), now).memory;
  }
  EXPECT_EQ(memory.rests.at(kPool.text()).until, now + kLongestPoolPause);
  const HealDecision urgent = reconcile(observed({}), {.base = 2}, 2, memory, now + kUrgentPoolPause);
  EXPECT_EQ(actions(urgent), Words{}) << "the minimum makes no boot succeed";
}

TEST(FailedBoots, AreForgottenOnceAWorkerStays) {
  HealMemory memory = decide(observed({failed_boot(2, 900s)}), {.base = 1}).memory;
  memory = with_a_start(std::move(memory), 1'030s);
  WorkerSeen stays = worker(3);
  stays.healed = true, stays.began = 1'031s;
  memory = decide(observed({stays}), {.base = 1}, std::move(memory), 1'030s + kLeastAge).memory;
  EXPECT_TRUE(memory.rests.contains(kPool.text()));
  memory = decide(observed({stays}), {.base = 1}, std::move(memory), 1'031s + kLeastAge).memory;
  EXPECT_TRUE(memory.rests.empty());
}

TEST(FailedBoots, AreNoneOfWorkersThatRanForLongOrThatUpStarted) {
  const Observed old = observed({failed_boot(2, 1'000s)});
  EXPECT_EQ(actions(decide(old, {.base = 1}, {}, 1'000s + kLeastAge)), Words{"start-workers"});
  Observed seen = observed({failed_boot(2, 900s)});
  seen.workers[0].healed = false;
  EXPECT_EQ(actions(decide(seen, {.base = 1})), Words{"start-workers"});
}

// As EC2 shows a worker that a reconciler started 100 s after 00:00, and that has ended for this reason.
WorkerSeen ended_by(const char* code, Market market) {
  Node node{.name = "w0002", .base = true, .instance_id = "i-2", .state = "terminated"};
  node.zone = "a", node.type = "c5.large", node.subnet_id = "subnet-a", node.market = market;
  node.launch_time = "1970-01-01T00:01:40.000Z", node.end_reason = code;
  node.tags[tag::kHealed] = "yes";
  return observed_in({.name = "demo", .ending = {node}}, {}, std::nullopt, {}).workers.at(0);
}

TEST(FailedBoots, AreAllEndsSoonAfterTheStartWhateverTheirCode) {
  for (const char* code : {"Client.VolumeLimitExceeded", "Client.InternalError", "Server.InternalError",
                           "Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown", ""}) {
    const HealDecision made = decide(observed({worker(1), ended_by(code, Market::on_demand)}), {.base = 2}, {}, 120s);
    EXPECT_EQ(actions(made), Words{}) << code;
    EXPECT_TRUE(says(made, std::string("(w0002 (i-2) has ended: ") + (*code ? code : "EC2 gives no reason"))) << code;
    const HealMemory memory = with_a_start(made.memory, 150s);
    EXPECT_EQ(memory.rests.at(kPool.text()).failures, 1) << "a pool whose machines end at once has not recovered";
  }
}

TEST(FailedBoots, AreNoneOfSpotMachinesThatEc2TakesBack) {
  const WorkerSeen gone = ended_by("Server.SpotInstanceTermination", Market::spot);
  HealMemory memory = decide(observed({gone}), {.base = 1}, {}, 120s).memory;
  EXPECT_FALSE(memory.rests.at(gone.pool.text()).boots_fail());
  EXPECT_EQ(memory.rests.at(gone.pool.text()).until, 120s + kAfterSpotLoss);
  WorkerSeen announced = worker(3);
  announced.healed = announced.announced = true, announced.began = 100s, announced.sick = "EC2 is to take it back";
  memory = decide(observed({announced}), {.base = 1}, {}, 120s).memory;
  EXPECT_TRUE(memory.rests.empty());
}

TEST(FailedBoots, AreNoneOfMachinesThatTheReconcilerEnds) {
  Observed seen = observed({worker(1), worker(2)});
  seen.workers[1].healed = true, seen.workers[1].began = 900s;
  HealDecision made = decide(seen, {.base = 1});
  made = decide(seen, {.base = 1}, made.memory, 1'000s + kSurplusTime);
  ASSERT_EQ(actions(made), Words{"end i-2"});
  seen.workers[1].state = State::ended;
  made = decide(seen, {.base = 1}, made.memory, 1'020s + kSurplusTime);
  EXPECT_TRUE(made.memory.rests.empty());
}

TEST(LostHeads, AreStartedAgainEachTimeAfterTwiceAsLongUntilOneStays) {
  Observed seen = observed({worker(1)});
  seen.head = Observed::Head::gone, seen.ended_head = "i-0";
  seen.head_end = "head (i-0) has ended: Client.VolumeLimitExceeded";
  UnixTime now(1'000);
  HealMemory memory;
  for (std::chrono::seconds pause = kFirstPoolPause; pause < kLongestPoolPause; pause *= 2) {
    HealDecision made = decide(seen, {.base = 1}, memory, now);
    ASSERT_EQ(actions(made), Words{"restore-head"});
    EXPECT_EQ(made.actions.front().reason,
              "the head is gone (head (i-0) has ended: Client.VolumeLimitExceeded): a new one takes its address, so "
              "that workers find it");
    memory = after_head_start(made.memory, now);
    made = decide(seen, {.base = 1}, memory, now + pause - 1s);
    EXPECT_EQ(actions(made), Words{});
    EXPECT_TRUE(says(made, "Client.VolumeLimitExceeded); the next attempt to start one is in 1"));
    now += pause;
  }
  memory = after_head_start(memory, now);
  EXPECT_EQ(memory.head_rest.until, now + kLongestPoolPause);
  seen.head = Observed::Head::alive;
  memory = decide(seen, {.base = 1}, memory, now + kLeastAge - 1s).memory;
  EXPECT_GT(memory.head_rest.failures, 0);
  memory = decide(seen, {.base = 1}, memory, now + kLeastAge).memory;
  EXPECT_EQ(memory.head_rest.failures, 0);
}

}  // namespace
}  // namespace dtrain::cluster::spared
