#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

TEST(DecideChange, ANewcomerDisturbsNobodyUntilItIsReady) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.host_up("w3");
  job.hello("w3");
  job.pass(60s);
  EXPECT_TRUE(of_kind<Send>(job.all()).empty());
  job.ready("w3");
  EXPECT_EQ(receivers<Prepare>(job.actions()).size(), 3u);
}

TEST(DecideChange, OldMembersGetTheBoundaryAndNewcomersFollowTheFirstWhoSwitched) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  job.prepare_host("w3");
  job.mesh();
  const auto commits = sent<Commit>(job.actions());
  ASSERT_EQ(commits.size(), 2u);
  EXPECT_EQ(commits[0].second.boundary, Boundary::step);
  EXPECT_EQ(job.ranks(), (Names{"w1", "w2"}));

  job.say(job.worker_on("w2"), Progress{.generation = 2, .phase = Phase::entering, .position = {true, 0, 1, 1}});
  EXPECT_EQ(receivers<Commit>(job.actions()), std::vector<WorkerId>{job.worker_on("w3")});
  EXPECT_EQ(sent<Commit>(job.actions())[0].second.boundary, Boundary::now);
  EXPECT_EQ(job.ranks(), (Names{"w1", "w2", "w3"}));
}

// They add up among themselves before anything leaves their host.
TEST(DecideChange, ANewcomerGetsTheRankBesideThoseOfItsHost) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(HostsWanted{.hosts = {host_line("w1", 2), host_line("w2")}});
  job.pass(1s);
  const WorkerId second = job.state().hosts.at("w1").slots.at(1);
  job.say(second, Hello{.pid = 1, .data = comm::PeerAddress{"10.0.0.1", 1}, .fingerprint = "same"});
  job.say(second, Ready{.position = {}, .probe = "same"});
  job.complete_change();
  EXPECT_EQ(job.state().current->members, (std::vector<WorkerId>{job.worker_on("w1"), second, job.worker_on("w2")}));
}

TEST(DecideChange, AnyWorkerCanLeaveAndSurvivorsKeepTheirOrder) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.want({"w2", "w3"});
  job.pass(1s);
  job.mesh();
  EXPECT_TRUE(sent<Leave>(job.all()).empty());
  job.enter();
  EXPECT_EQ(receivers<Leave>(job.all()).size(), 1u);
  job.train();
  EXPECT_EQ(job.ranks(), (Names{"w2", "w3"}));
  EXPECT_EQ(logged(job.all()), "-w1");
}

TEST(DecideChange, AReplacementIsOneChangeAndOneStart) {
  Job job;
  job.run_on({"a", "b", "c"});
  job.want({"a", "b", "d"});
  job.pass(10s);
  EXPECT_FALSE(job.state().change) << "c stays until d is ready";
  job.prepare_host("d");
  EXPECT_EQ(job.state().change->leaving.size(), 1u);
  job.complete_change();
  job.pass(10s);
  EXPECT_EQ(job.state().current->number, 2u);
  EXPECT_EQ(job.ranks(), (Names{"a", "b", "d"}));
  EXPECT_EQ(started(job.all()), Names{"d"});
  EXPECT_EQ(logged(job.all()), "-c +d");
}

TEST(DecideChange, AStepProvesThatAllHaveEnteredSoRemovedComesFirstEvenIfNewsIsLate) {
  Job job;
  job.run_on({"a", "b"});
  job.want({"a", "d"});
  job.pass(1s);
  job.prepare_host("d");
  job.mesh();
  const WorkerId d = job.worker_on("d");
  job.say(job.worker_on("a"), Progress{.generation = 2, .phase = Phase::entering, .position = {true, 0, 1, 1}});
  job.say(d, Entered{2, {true, 0, 1, 1}});
  job.say(d, Progress{.generation = 2, .phase = Phase::computing, .position = {true, 0, 2, 2}});
  EXPECT_EQ(logged(job.all()), "-b +d");
  job.say(job.worker_on("a"), Entered{2, {true, 0, 1, 1}});
  EXPECT_EQ(job.state().current->awaited, 0u);
}

TEST(DecideChange, AReplacementThatFailsDoesNotKeepTheOldOneForEver) {
  Job job;
  job.run_on({"a", "b", "c"});
  job.want({"a", "b", "d"});
  job.feed(HostDown{"d", "no route"});
  ASSERT_TRUE(job.state().change || (job.pass(1s), job.state().change));
  EXPECT_EQ(job.state().change->leaving.size(), 1u);
}

TEST(DecideChange, AllHostsReplacedAtOnceHandTheStateOverFirst) {
  Policy policy = elastic_policy();
  policy.allow_mass_remove = true;
  Job job(policy);
  job.run_on({"a"});
  job.want({"b"});
  job.pass(1s);
  job.prepare_host("b");
  EXPECT_EQ(job.state().change->members.size(), 2u);
  job.complete_change();
  job.pass(1s);
  job.complete_change();
  EXPECT_EQ(job.ranks(), Names{"b"});
  EXPECT_EQ(logged(job.all()), "+b -a");
}

TEST(DecideChange, WhatArrivesTogetherIsOneGeneration) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2", "w3", "w4"});
  for (const char* host : {"w2", "w3", "w4"}) job.prepare_host(host);
  EXPECT_FALSE(job.state().change) << "the generation before began less than a quarter of a second ago";
  job.pass(300ms);
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->members.size(), 4u);
}

TEST(DecideChange, TheNextPlannedChangeWaitsForAStep) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  job.prepare_host("w2");
  job.mesh();
  job.enter();
  job.prepare_host("w3");
  job.pass(1s);
  EXPECT_FALSE(job.state().change);
  job.train();
  job.pass(1s);
  EXPECT_TRUE(job.state().change);
}

TEST(DecideChange, AGenerationSaysItsBatchAndRateWhereTheyFollowTheWorkers) {
  Policy policy = elastic_policy();
  policy.step_size = {.per_worker = 50, .rate_batch = 100};
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.pass(1s);
  job.complete_change();
  const auto generations = events(job.all(), EventKind::generation);
  ASSERT_EQ(generations.size(), 1u);
  EXPECT_EQ(generations[0].at("global_batch").as_integer(), 150);
  EXPECT_EQ(generations[0].at("rate_factor").as_number(), 1.5);
  const auto says = [](const Say& say) {
    return say.text == "generation 2: 3 workers, 150 samples a step, learning rate x 1.5";
  };
  EXPECT_TRUE(std::ranges::any_of(of_kind<Say>(job.all()), says));
}

TEST(DecideChange, ANewcomerThatDiesWhileConnectingCostsOnlyANumber) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  job.prepare_host("w3");
  job.take_all();
  job.feed(exited(job.worker_on("w3"), 1));
  EXPECT_FALSE(job.state().change);
  EXPECT_TRUE(of_kind<Send>(job.actions()).empty()) << "the others are not told";
  EXPECT_EQ(events(job.actions(), EventKind::abandoned).size(), 1u);
  EXPECT_EQ(job.state().current->number, 1u);
  EXPECT_EQ(job.state().next_generation, 3u);
  EXPECT_GT(job.state().hosts.at("w3").quarantined_until, job.now());
}

TEST(DecideChange, ANewcomerThatDoesNotConnectInTimeIsGivenUp) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  job.prepare_host("w3");
  const WorkerId newcomer = job.worker_on("w3");
  for (const char* host : {"w1", "w2"}) job.say(job.worker_on(host), Meshed{2, "rank 2 does not answer"});
  job.pass(20s);
  EXPECT_FALSE(job.state().change);
  EXPECT_EQ(job.state().workers.at(newcomer).phase, WorkerPhase::ending);
  EXPECT_FALSE(job.state().freezing);
}

TEST(DecideChange, ANewcomerThatFailsAfterTheCommitFreezesTheOthersBecauseTheyMayHaveSwitched) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  job.prepare_host("w3");
  job.mesh();
  job.feed(exited(job.worker_on("w3"), 0, 9));
  const auto freezes = sent<Freeze>(job.actions());
  ASSERT_EQ(freezes.size(), 2u);
  EXPECT_EQ(freezes[0].second.generation, 2u);
}

TEST(DecideChange, AHostThatIsTakenOutWhileItConnectsDoesNotJoin) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  job.prepare_host("w3");
  const WorkerId newcomer = job.worker_on("w3");
  job.want({"w1", "w2"});
  EXPECT_FALSE(job.state().change);
  EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{newcomer});
  EXPECT_EQ(logged(job.all()), "");
}

TEST(DecideChange, AHostThatIsWantedAgainBeforeTheCommitStays) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1", "w2"});
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  job.want({"w1", "w2", "w3"});
  job.mesh();
  EXPECT_TRUE(sent<Commit>(job.actions()).empty());
  EXPECT_EQ(job.ranks(), (Names{"w1", "w2", "w3"}));
  EXPECT_EQ(logged(job.all()), "");
}

TEST(DecideChange, WithEpochBoundariesOnlyDrainsActAtTheNextStep) {
  Policy policy = elastic_policy();
  policy.boundary = Boundary::epoch;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1", "w2"});
  job.pass(1s);
  EXPECT_EQ(job.state().change->boundary, Boundary::epoch);
  job.complete_change();

  job.feed(Drain{"w2", "spot notice"});
  job.pass(1s);
  EXPECT_EQ(job.state().change->boundary, Boundary::step);
  job.complete_change();
  EXPECT_EQ(job.ranks(), Names{"w1"});
}

TEST(DecideChange, ADrainDoesNotWaitForAnEpochThatAnotherChangeWaitsFor) {
  Policy policy = elastic_policy();
  policy.boundary = Boundary::epoch;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1", "w2"});
  job.pass(1s);
  job.mesh();
  job.take_all();
  job.feed(Drain{"w2", "spot notice"});
  EXPECT_EQ(receivers<Freeze>(job.actions()).size(), 3u);
  job.freeze();
  job.complete_change();
  EXPECT_EQ(job.ranks(), Names{"w1"});
  EXPECT_EQ(logged(job.all()), "-w2 -w3");
}

TEST(DecideChange, AWorkerThatAsksToLeaveIsDrainedAndNotStartedAgain) {
  Job job;
  job.run_on({"w1", "w2"});
  job.say(job.worker_on("w1"), AskLeave{"signal 15"});
  job.pass(1s);
  const WorkerId leaver = job.worker_on("w1");
  job.complete_change();
  job.say(leaver, left(Left::How::removed));
  job.feed(exited(leaver));
  job.pass(60s);
  EXPECT_EQ(job.ranks(), Names{"w2"});
  EXPECT_TRUE(started(job.all()).empty());
  EXPECT_EQ(phase_of(job.state(), job.state().hosts.at("w1"), job.now()), HostPhase::drained);
  EXPECT_EQ(job.state().hosts.at("w1").failures, 0);
}

TEST(DecideChange, TheAgentOfAHostThatLeftEndsAfterItsProcess) {
  Job job;
  job.run_on({"w1", "w2"});
  const WorkerId leaver = job.worker_on("w2");
  job.want({"w1"});
  job.pass(1s);
  job.complete_change();
  EXPECT_TRUE(of_kind<EndHost>(job.all()).empty());
  job.say(leaver, left(Left::How::removed));
  job.feed(exited(leaver));
  ASSERT_EQ(of_kind<EndHost>(job.actions()).size(), 1u);
  job.feed(HostDown{"w2", "closed"});
  EXPECT_EQ(job.state().hosts.count("w2"), 0u);
  EXPECT_FALSE(job.state().first_failure);
}

TEST(DecideChange, ANewcomerThatLacksDescriptorsGoesBeforeThoseThatMissIt) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2", "w3"});
  for (const char* host : {"w2", "w3"}) job.prepare_host(host);
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  ASSERT_EQ(job.state().change->members.size(), 3u);
  const Generation number = job.state().change->number;
  const WorkerId lacking = job.worker_on("w3");
  job.say(job.worker_on("w1"), Meshed{number, "rank 2 has not called"});
  job.say(job.worker_on("w2"), Meshed{number, "rank 2 has not called"});
  job.say(lacking, Meshed{number, "no descriptor is to be had", true});
  ASSERT_TRUE(job.state().first_failure);
  EXPECT_EQ(job.state().first_failure->worker, lacking);
  EXPECT_EQ(job.state().failures, 1);
}

TEST(DecideChange, ASilentNewcomerGoesWithTheOneThatLacksDescriptors) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2", "w3"});
  for (const char* host : {"w2", "w3"}) job.prepare_host(host);
  job.pass(1s);
  const Generation number = job.state().change->number;
  const WorkerId silent = job.worker_on("w2");
  job.say(job.worker_on("w1"), Meshed{number, "rank 2 has not called"});
  job.say(job.worker_on("w3"), Meshed{number, "no descriptor is to be had", true});
  job.pass(10min);
  const auto kills = of_kind<KillWorker>(job.all());
  EXPECT_TRUE(std::ranges::any_of(kills, [&](const KillWorker& kill) { return kill.worker == silent; }));
}

TEST(DecideChange, ALeaverThatDoesNotEndIsKilled) {
  Job job;
  job.run_on({"w1", "w2"});
  const WorkerId leaver = job.worker_on("w2");
  job.want({"w1"});
  job.pass(1s);
  job.complete_change();
  job.pass(31s);
  const auto kills = of_kind<KillWorker>(job.all());
  ASSERT_EQ(kills.size(), 1u);
  EXPECT_EQ(kills[0].worker, leaver);
  EXPECT_EQ(job.state().failures, 0);
}

TEST(DecideChange, TheEventOfAGenerationSaysHowLongEachStationTook) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.pass(1s);
  job.prepare_host("w2");
  job.pass(200ms);
  job.mesh();
  job.pass(300ms);
  job.enter();
  job.pass(400ms);
  job.train();
  const auto found = events(job.all(), EventKind::generation);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].at("seconds").at("prepare").as_number(), 0.2, 1e-9);
  EXPECT_NEAR(found[0].at("seconds").at("commit").as_number(), 0.3, 1e-9);
  EXPECT_NEAR(found[0].at("seconds").at("first_step").as_number(), 0.4, 1e-9);
  EXPECT_NEAR(found[0].at("pause_seconds").as_number(), 0.4, 1e-9);
}

}  // namespace
}  // namespace dtrain::elastic
