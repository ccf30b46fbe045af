#include <gtest/gtest.h>

#include <fmt/format.h>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
using Kind = HealAction::Kind;
using State = WorkerSeen::State;
using Words = std::vector<std::string>;

const Pool kSpotA{Market::spot, "g5.xlarge", "a", "subnet-a"};
const Pool kDemandA{Market::on_demand, "g5.xlarge", "a", "subnet-a"};
const Pool kSpotB{Market::spot, "g5.xlarge", "b", "subnet-b"};

WorkerSeen worker(int number, State state = State::running, bool base = true) {
  return {.id = fmt::format("i-{}", number), .name = worker_name(number), .base = base, .state = state, .pool = kSpotA};
}

Observed observed(std::vector<WorkerSeen> workers) {
  return {.workers = std::move(workers), .pools = {kSpotA, kDemandA, kSpotB}};
}

Words actions(const HealDecision& decision) {
  Words all;
  for (const HealAction& one : decision.actions) {
    std::string text = enum_name(kHealActionNames, one.kind);
    if (!one.id.empty()) text += " " + one.id;
    if (!one.host.empty()) text += " " + one.host;
    if (one.kind == Kind::start_workers) text += fmt::format(" {}{}", one.count, one.base ? "" : " added");
    all.push_back(text);
  }
  return all;
}

HealDecision decide(const Observed& what, const Wish& wish, HealMemory memory = {}, UnixTime now = 1'000s) {
  return reconcile(what, wish, 0, std::move(memory), now);
}

TEST(Reconcile, DoesNothingForAClusterThatIsAsWanted) {
  const HealDecision made = decide(observed({worker(1), worker(2, State::starting)}), {.base = 2});
  EXPECT_TRUE(made.actions.empty());
  EXPECT_TRUE(made.waits.empty());
}

struct Case {
  const char* what;
  Observed seen;
  Wish wish;
  Words actions;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  all.push_back(
      {"a lost base worker", observed({worker(1), worker(2, State::ended)}), {.base = 2}, {"start-workers 1"}});
  all.push_back(
      {"all workers lost", observed({}), {.base = 3, .elastic = 2}, {"start-workers 3", "start-workers 2 added"}});
  all.push_back({"a stopped worker is its owner's", observed({worker(1), worker(2, State::stopped)}), {.base = 2}, {}});
  Observed gone = observed({worker(1)});
  gone.head = Observed::Head::gone;
  all.push_back({"the head first", gone, {.base = 2}, {"restore-head"}});
  gone.head = Observed::Head::stopped;
  all.push_back({"a stopped head", gone, {.base = 2}, {}});
  gone.complete = false;
  all.push_back({"while it is made or removed", gone, {.base = 2}, {}});
  Observed off = observed({worker(1, State::ended), worker(2)});
  off.stopped = true;
  all.push_back({"while its user has it stopped", off, {.base = 2}, {}});
  off.head = Observed::Head::gone;
  all.push_back({"nor a head", off, {.base = 2}, {}});
  WorkerSeen removed = worker(3, State::running, false);
  removed.leaves = true;
  all.push_back({"a removed worker leaves the wish",
                 observed({worker(1), removed}),
                 {.base = 1, .elastic = 1},
                 {"count-out i-3"}});
  removed.left = true;
  all.push_back({"once", observed({worker(1), removed}), {.base = 1}, {}});
  WorkerSeen sick = worker(2);
  sick.replaced_by = "i-9";
  WorkerSeen fresh = worker(9, State::starting);
  all.push_back({"beside its replacement", observed({worker(1), sick, fresh}), {.base = 2}, {}});
  fresh.state = State::running;
  all.push_back({"a replacement that runs", observed({worker(1), sick, fresh}), {.base = 2}, {"finish-replace i-2"}});
  fresh.state = State::ended;
  all.push_back({"a replacement that was lost", observed({worker(1), sick, fresh}), {.base = 2}, {}});
  return all;
}

TEST(Reconcile, EndsTheWorkersWhenTheBudgetIsSpentAndStartsNothing) {
  Observed seen = observed({worker(1), worker(2, State::starting), worker(3, State::ended), worker(4, State::stopped)});
  seen.spent_budget = "$51.00 of the budget of $50.00";
  const HealDecision made = decide(seen, {.base = 4});
  EXPECT_EQ(actions(made), (Words{"close"}));
  EXPECT_EQ(made.actions.front().ids, (Words{"i-1", "i-2"}));
  EXPECT_EQ(made.actions.front().reason, "$51.00 of the budget of $50.00 are spent");
  seen.workers.clear();
  EXPECT_TRUE(decide(seen, {.base = 4}).actions.empty());
  EXPECT_EQ(decide(seen, {.base = 4}).waits,
            (Words{"$51.00 of the budget of $50.00 are spent, so no machine is started; the head still runs and costs "
                   "money"}));
  seen.head = Observed::Head::gone;
  EXPECT_TRUE(decide(seen, {.base = 4}).actions.empty());
}

TEST(Reconcile, EndsTheWorkersOfAStoppedClusterTooWhenTheBudgetIsSpent) {
  Observed seen = observed({worker(1), worker(2, State::stopped)});
  seen.spent_budget = "$51.00 of the budget of $50.00";
  seen.stopped = true;
  HealDecision made = decide(seen, {.base = 2});
  ASSERT_EQ(actions(made), Words{"close"});
  EXPECT_EQ(made.actions.front().ids, Words{"i-1"});
  seen.stopped = false, seen.complete = false;
  made = decide(seen, {.base = 2});
  ASSERT_EQ(actions(made), Words{"close"});
  EXPECT_EQ(made.actions.front().ids, Words{"i-1"});
}

TEST(Reconcile, KeepsTheWish) {
  for (const Case& one : cases()) EXPECT_EQ(actions(decide(one.seen, one.wish)), one.actions) << one.what;
}

TEST(Reconcile, ReplacesWhatIsSickForLongEnough) {
  WorkerSeen sick = worker(2);
  sick.sick = "the machine below it is impaired";
  const Observed seen = observed({worker(1), sick, worker(3)});
  HealDecision made = decide(seen, {.base = 3});
  EXPECT_TRUE(made.actions.empty());
  made = decide(seen, {.base = 3}, made.memory, 1'000s + kSickTime);
  EXPECT_EQ(actions(made), (Words{"replace i-2"}));
  EXPECT_NE(made.actions.front().reason.find("impaired"), std::string::npos);
  const HealDecision well = decide(observed({worker(1), worker(2), worker(3)}), {.base = 3}, made.memory);
  EXPECT_TRUE(well.memory.sick.empty());
}

TEST(Reconcile, WhereMostAreSickAtOnceItReplacesOneAsATrialAndThenTheOthers) {
  std::vector<WorkerSeen> all{worker(1), worker(2), worker(3), worker(4)};
  all[0].sick = all[1].sick = all[2].sick = "its agent is lost";
  HealDecision made = decide(observed(all), {.base = 4});
  made = decide(observed(all), {.base = 4}, made.memory, 1'000s + kSickTime);
  EXPECT_TRUE(made.actions.empty());
  ASSERT_EQ(made.waits.size(), 1U);
  EXPECT_NE(made.waits.front().find("3 of 4"), std::string::npos);

  made = decide(observed(all), {.base = 4}, made.memory, 1'000s + kMostSickTime);
  EXPECT_EQ(actions(made), Words{"replace i-1"});

  const UnixTime later = 1'000s + kMostSickTime + kAskAgain;
  WorkerSeen fresh = worker(5);
  fresh.healed = true, fresh.began = later - kAskAgain;
  all[0] = fresh;
  all[0].sick = "its agent is lost";
  made = decide(observed(all), {.base = 4}, made.memory, later + kTrialTime);
  EXPECT_TRUE(made.actions.empty()) << "the successor is sick too";

  all[0].sick = {};
  made = decide(observed(all), {.base = 4}, made.memory, later + kTrialTime);
  EXPECT_EQ(actions(made), (Words{"replace i-2", "replace i-3"}));
}

TEST(Reconcile, DoesNotDoAgainWhatAwsDoesNotShowYet) {
  Observed seen = observed({worker(1), worker(2, State::ended, false)});
  seen.workers[1].leaves = true;
  HealDecision made = decide(seen, {.base = 1, .elastic = 1});
  EXPECT_EQ(actions(made), Words{"count-out i-2"});
  made = decide(seen, {.base = 1}, made.memory, 1'020s);
  EXPECT_TRUE(made.actions.empty());
  seen.workers[0].sick = "it is to go", seen.workers[0].announced = true;
  made = decide(seen, {.base = 1}, made.memory, 1'040s);
  EXPECT_EQ(actions(made), Words{"replace i-1"});
  made = decide(seen, {.base = 1}, made.memory, 1'045s);
  EXPECT_TRUE(made.actions.empty());
  made = decide(seen, {.base = 1}, made.memory, 1'045s + kAskAgain);
  EXPECT_EQ(actions(made), (Words{"count-out i-2", "replace i-1"})) << "what failed is done again";
}

TEST(Reconcile, ReplacesThoseThatBecameSickOneAfterTheOther) {
  Observed seen = observed({worker(1), worker(2), worker(3)});
  seen.workers[0].sick = "the disk of / is full";
  HealDecision made = decide(seen, {.base = 3});
  seen.workers[1].sick = "its agent is lost";
  made = decide(seen, {.base = 3}, made.memory, 1'001s + kSickTime);
  made = decide(seen, {.base = 3}, made.memory, 1'001s + 2 * kSickTime);
  EXPECT_EQ(actions(made), (Words{"replace i-1", "replace i-2"}));
}

// Worker 2 is sick, and worker 3 was started in its place; both are as the job shows them.
struct Pair {
  WorkerSeen bad = worker(2), fresh = worker(3);
  HealMemory memory{};
  UnixTime now{1'000};

  Pair(Part old_part, Part new_part) {
    bad.sick = "the disk of / is full";
    bad.replaced_by = fresh.id;
    bad.host = "10.0.0.2", fresh.host = "10.0.0.3";
    bad.part = old_part, fresh.part = new_part;
    bad.listed = old_part == Part::trains, fresh.listed = new_part != Part::outside;
    fresh.ready = true;
  }
  std::string next() {
    HealDecision made = decide(observed({worker(1), bad, fresh}), {.base = 2}, memory, now);
    memory = made.memory;
    EXPECT_TRUE(made.hurries);
    const Words done = actions(made);
    return done.empty() ? made.waits.at(0) : done.at(0);
  }
};

TEST(Handover, TheNewcomerTrainsBeforeTheSickOneLeavesAndIsEnded) {
  Pair pair(Part::trains, Part::outside);
  pair.fresh.ready = false;
  EXPECT_EQ(pair.next(), "w0003 boots to take the place of w0002");
  pair.fresh.ready = true;
  EXPECT_EQ(pair.next(), "join i-3 10.0.0.3");
  EXPECT_EQ(pair.next(), "w0003 is there to take the place of w0002") << "the job is not asked again at once";
  pair.now += kAskAgain;
  EXPECT_EQ(pair.next(), "join i-3 10.0.0.3");
  pair.fresh.listed = true, pair.fresh.part = Part::joining;
  EXPECT_EQ(pair.next(), "w0003 joins the job before w0002 leaves it");
  pair.fresh.part = Part::trains;
  EXPECT_EQ(pair.next(), "drain i-2 10.0.0.2");
  pair.bad.listed = false;
  EXPECT_EQ(pair.next(), "w0002 leaves the job");
  pair.bad.part = Part::outside;
  EXPECT_EQ(pair.next(), "finish-replace i-2");
}

TEST(Handover, ASpareIsAsGoodAsOneThatTrains) {
  EXPECT_EQ(Pair(Part::trains, Part::spare).next(), "drain i-2 10.0.0.2");
}

TEST(Handover, WithoutAJobOrWithoutAskingItTheNewcomerNeedOnlyBeThere) {
  EXPECT_EQ(Pair(Part::no_job, Part::no_job).next(), "finish-replace i-2");
  EXPECT_EQ(Pair(Part::unasked, Part::unasked).next(), "finish-replace i-2");
  EXPECT_NE(Pair(Part::unknown, Part::unknown).next().find("cannot be asked"), std::string::npos);
}

TEST(Handover, TakesItsTimeButNotForEver) {
  for (const Part part : {Part::trains, Part::fixed, Part::unknown}) {
    Pair pair(part, part == Part::trains ? Part::outside : part);
    EXPECT_EQ(pair.next().find("finish-replace"), std::string::npos);
    pair.now += kHandoverTime - 1s;
    EXPECT_EQ(pair.next().find("finish-replace"), std::string::npos);
    pair.now += 1s;
    EXPECT_EQ(pair.next(), "finish-replace i-2");
  }
}

TEST(Reconcile, ReplacesAtOnceWhatAwsIsToTakeBackAndThenAnotherPoolIsBetter) {
  std::vector<WorkerSeen> all{worker(1), worker(2)};
  for (WorkerSeen& one : all) one.announced = true, one.sick = "AWS may soon take it back: rebalance recommended";
  const HealDecision made = decide(observed(all), {.base = 2});
  EXPECT_EQ(actions(made), (Words{"replace i-1", "replace i-2"})) << "however many are announced";
  EXPECT_EQ(made.actions.front().pools.front().text(), kDemandA.text());
  EXPECT_TRUE(made.hurries);
}

TEST(Reconcile, AMachineThatIsSickSoonAfterItReplacedOneWaits) {
  WorkerSeen sick = worker(2);
  sick.sick = "the disk of / is full", sick.healed = true, sick.began = UnixTime(1'000);
  const Observed seen = observed({worker(1), sick, worker(3)});
  HealDecision made = decide(seen, {.base = 3});
  made = decide(seen, {.base = 3}, made.memory, 1'000s + kLeastAge - 1s);
  EXPECT_TRUE(made.actions.empty());
  EXPECT_NE(made.waits.at(0).find("the cause may be the job"), std::string::npos);
  made = decide(seen, {.base = 3}, made.memory, 1'000s + kLeastAge);
  EXPECT_EQ(actions(made), (Words{"replace i-2"}));
}

TEST(Reconcile, CountsMachinesByTheirWeight) {
  std::vector<WorkerSeen> all{worker(1), worker(2), worker(3)};
  all[0].weight = 2;
  EXPECT_TRUE(decide(observed(all), {.base = 4}).actions.empty());
  EXPECT_EQ(actions(decide(observed(all), {.base = 6})), (Words{"start-workers 2"}));
  all[0].state = State::ended;
  EXPECT_EQ(actions(decide(observed(all), {.base = 4})), (Words{"start-workers 2"}));
  all[0].leaves = true;
  const HealDecision made = decide(observed(all), {.base = 4});
  EXPECT_EQ(actions(made), (Words{"count-out i-1"}));
  EXPECT_EQ(made.actions.front().count, 2);
}

TEST(Reconcile, CountsOutNoBaseWorkerThatWasBeyondTheWish) {
  std::vector<WorkerSeen> all{worker(1), worker(2), worker(3)};
  all[2].leaves = true;
  for (const auto& [wanted, fewer] : {std::pair(1, 0), std::pair(2, 0), std::pair(3, 1)}) {
    const HealDecision made = decide(observed(all), {.base = wanted});
    ASSERT_EQ(actions(made), (Words{"count-out i-3"}));
    EXPECT_EQ(made.actions.front().count, fewer) << wanted;
  }
}

TEST(Reconcile, EndsNoMachineThatCountsForMoreThanThereIsTooMuch) {
  std::vector<WorkerSeen> all{worker(1), worker(2), worker(3)};
  for (WorkerSeen& one : all) one.healed = true, one.weight = 2;
  HealDecision made = decide(observed(all), {.base = 5});
  made = decide(observed(all), {.base = 5}, made.memory, 1'000s + kSurplusTime);
  EXPECT_TRUE(made.actions.empty());
  made = decide(observed(all), {.base = 4});
  made = decide(observed(all), {.base = 4}, made.memory, 1'000s + kSurplusTime);
  EXPECT_EQ(actions(made), (Words{"end i-3"}));
}

TEST(Reconcile, AWorkerInThePlaceOfALostOneJoinsTheJobThatRuns) {
  WorkerSeen fresh = worker(2);
  fresh.healed = fresh.ready = true, fresh.part = Part::outside, fresh.host = "10.0.0.2";
  HealDecision made = decide(observed({worker(1), fresh}), {.base = 2});
  EXPECT_EQ(actions(made), (Words{"join i-2 10.0.0.2"}));
  EXPECT_TRUE(decide(observed({worker(1), fresh}), {.base = 2}, made.memory).actions.empty());
  fresh.was_listed = true;
  EXPECT_TRUE(decide(observed({worker(1), fresh}), {.base = 2}).actions.empty()) << "the user took it out of the job";
}

std::vector<std::string> pools_asked(const HealDecision& made) {
  Words all;
  for (const Pool& pool : made.actions.at(0).pools) all.push_back(pool.text());
  return all;
}

TEST(Reconcile, APoolWithoutMachinesRestsEachTimeForTwiceAsLong) {
  HealMemory memory = after_attempts({}, {{kSpotA, 1, 0, "InsufficientInstanceCapacity", ""}}, 1'000s);
  const Observed seen = observed({worker(1)});
  EXPECT_EQ(pools_asked(decide(seen, {.base = 2}, memory, 1'029s)), (Words{kDemandA.text(), kSpotB.text()}));
  EXPECT_EQ(pools_asked(decide(seen, {.base = 2}, memory, 1'030s)).front(), kSpotA.text());
  memory = after_attempts(memory, {{kSpotA, 1, 0, "InsufficientInstanceCapacity", ""}}, 1'030s);
  EXPECT_EQ(pools_asked(decide(seen, {.base = 2}, memory, 1'089s)).size(), 2U);
  EXPECT_EQ(pools_asked(decide(seen, {.base = 2}, memory, 1'090s)).size(), 3U);
  memory = after_attempts(memory, {{kSpotA, 1, 1, "", ""}}, 1'090s);
  EXPECT_TRUE(memory.rests.empty());
}

TEST(Reconcile, ThePausesHaveALimitAndAShorterOneBelowTheMinimum) {
  HealMemory memory;
  for (int failure = 0; failure < 20; ++failure) {
    memory =
        after_attempts(memory, {{kSpotA, 1, 0, "X", ""}, {kDemandA, 1, 0, "X", ""}, {kSpotB, 1, 0, "X", ""}}, 1'000s);
  }
  EXPECT_EQ(memory.rests.at(kSpotA.text()).until, 1'000s + kLongestPoolPause);
  const Observed seen = observed({worker(1)});
  const HealDecision waits = reconcile(seen, {.base = 3}, 1, memory, 1'000s + kUrgentPoolPause);
  EXPECT_TRUE(waits.actions.empty());
  EXPECT_NE(waits.waits.at(0).find("1 of 3 workers are there, but no pool had a machine"), std::string::npos);
  const HealDecision urgent = reconcile(seen, {.base = 3}, 2, memory, 1'000s + kUrgentPoolPause);
  EXPECT_EQ(actions(urgent), (Words{"start-workers 2"}));
  EXPECT_NE(urgent.actions.at(0).reason.find("fewer than the minimum of 2"), std::string::npos);
}

TEST(Reconcile, APoolThatReclaimedAMachineIsNotAskedFirst) {
  const HealDecision made = decide(observed({worker(1), worker(2, State::ended)}), {.base = 2});
  EXPECT_EQ(pools_asked(made), (Words{kDemandA.text(), kSpotB.text()}));
  const auto later =
      decide(observed({worker(1), worker(2, State::ended)}), {.base = 2}, made.memory, 1'000s + kAfterSpotLoss);
  EXPECT_EQ(pools_asked(later).front(), kSpotA.text());
}

TEST(Reconcile, EndsOnlyWhatAReconcilerStartedAndOnlyAfterAWhile) {
  std::vector<WorkerSeen> all{worker(1), worker(2), worker(3), worker(4)};
  EXPECT_TRUE(decide(observed(all), {.base = 2}, {}, 5'000s).actions.empty());
  all[1].healed = all[3].healed = true;
  all[1].launched = "2026-01-01T00:00:00Z", all[3].launched = "2026-01-02T00:00:00Z";
  HealDecision made = decide(observed(all), {.base = 3});
  EXPECT_TRUE(made.actions.empty());
  made = decide(observed(all), {.base = 3}, made.memory, 1'000s + kSurplusTime);
  EXPECT_EQ(actions(made), (Words{"end i-4"}));
}

TEST(RefillPools, ChangeTheTypeThenTheMarketThenTheZone) {
  Spec spec;
  spec.instance_types = {"g5.xlarge", "g6.xlarge"};
  spec.spot = SpotUse::prefer;
  Account account;
  account.subnets = {{"subnet-a", "vpc", "a", true}, {"subnet-b", "vpc", "b", true}};
  Words texts;
  for (const Pool& pool : refill_pools(spec, account, "b")) texts.push_back(pool.text());
  EXPECT_EQ(texts, (Words{"spot g5.xlarge in b", "spot g6.xlarge in b", "on-demand g5.xlarge in b",
                          "on-demand g6.xlarge in b", "spot g5.xlarge in a", "spot g6.xlarge in a",
                          "on-demand g5.xlarge in a", "on-demand g6.xlarge in a"}));
}

}  // namespace
}  // namespace dtrain::cluster
