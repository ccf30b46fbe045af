#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

TEST(DecideFailure, TheOthersFreezeThenGoOnAtOnceInANewGeneration) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  EXPECT_EQ(receivers<Freeze>(job.actions()).size(), 2u);
  job.freeze();
  ASSERT_EQ(receivers<Prepare>(job.actions()).size(), 2u);
  job.mesh();
  EXPECT_EQ(sent<Commit>(job.actions())[0].second.boundary, Boundary::now);
  job.enter();
  job.train();
  EXPECT_EQ(job.ranks(), (Names{"w2", "w3"}));
  EXPECT_EQ(logged(job.all()), "") << "nobody asked w1 to go";
}

TEST(DecideFailure, NothingIsPreparedBeforeTheLastOneIsFrozen) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w1"), 1));
  job.say(job.worker_on("w2"), Frozen{1, {true, 0, 1, 1}});
  job.say(job.worker_on("w2"), Frozen{1, {true, 0, 1, 1}});
  EXPECT_FALSE(job.state().change);
  job.say(job.worker_on("w3"), Frozen{1, {true, 0, 1, 1}});
  EXPECT_TRUE(job.state().change);
}

TEST(DecideFailure, WhoReportsALossIsFrozenAlready) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.say(job.worker_on("w2"), Lost{1, {true, 0, 1, 1}, "rank 0 is gone"});
  EXPECT_EQ(receivers<Freeze>(job.actions()), (std::vector<WorkerId>{job.worker_on("w1"), job.worker_on("w3")}));
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.say(job.worker_on("w3"), Frozen{1, {true, 0, 1, 1}});
  EXPECT_EQ(job.state().change->members.size(), 2u);
}

TEST(DecideFailure, WhoDoesNotFreezeInTimeIsEvictedToo) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId stuck = job.worker_on("w2");
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.say(job.worker_on("w3"), Frozen{1, {true, 0, 1, 1}});
  job.pass(6s);
  const auto kills = of_kind<KillWorker>(job.all());
  ASSERT_EQ(kills.size(), 1u);
  EXPECT_EQ(kills[0].worker, stuck);
  EXPECT_TRUE(kills[0].dump_stack);
  EXPECT_EQ(job.state().change->members, std::vector<WorkerId>{job.worker_on("w3")});
}

TEST(DecideFailure, ASecondDeathDuringRecoveryTakesANewNumberButNoNewFreeze) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.freeze();
  job.take_all();
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.pass(1s);
  EXPECT_TRUE(sent<Freeze>(job.all()).empty());
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->number, 3u);
  job.complete_change();
  EXPECT_EQ(job.ranks(), Names{"w3"});
}

TEST(DecideFailure, ADeathAfterTheCommitOfARecoveryFreezesAgain) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.freeze();
  job.mesh();
  job.feed(exited(job.worker_on("w2"), 0, 9));
  const auto freezes = sent<Freeze>(job.actions());
  ASSERT_EQ(freezes.size(), 1u);
  EXPECT_EQ(freezes[0].second.generation, 2u);
}

TEST(DecideFailure, RecoveryDoesNotWaitForReadyNewcomers) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.freeze();
  EXPECT_EQ(job.state().change->members, std::vector<WorkerId>{job.worker_on("w2")});
  job.complete_change();
  job.pass(1s);
  EXPECT_EQ(job.state().change->members.size(), 2u);
}

TEST(DecideFailure, TheHostIsTriedAgainAtOnceAndLaterAfterAQuarantineThatDoubles) {
  Job job;
  job.run_on({"w1", "w2"});
  std::vector<Duration> waits;
  for (int i = 0; i < 4; ++i) {
    job.take_all();
    job.feed(exited(job.worker_on("w2"), 1));
    const Time failed = job.now();
    job.freeze();
    job.complete_change();
    while (started(job.all()).empty()) job.pass(500ms);
    waits.push_back(std::chrono::duration_cast<Duration>(job.now() - failed));
    job.prepare_host("w2");
    job.pass(500ms);
    job.complete_change();
  }
  EXPECT_EQ(waits, (std::vector<Duration>{0s, 5s, 10s, 20s}));
}

TEST(DecideFailure, TakingAHostOutAndInAgainForgetsItsFailures) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 1));
  job.freeze();
  job.complete_change();
  ASSERT_EQ(job.state().hosts.at("w2").failures, 1);
  job.want({"w1"}, true);
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.want({"w1", "w2"}, true);
  EXPECT_EQ(job.state().hosts.at("w2").failures, 0);
  job.feed(HostDown{"w2", "closed"});
  EXPECT_EQ(of_kind<StartHost>(job.actions()).size(), 1u);
}

TEST(DecideFailure, ALongMembershipForgivesAHostsFailures) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 1));
  job.freeze();
  job.complete_change();
  job.pass(6s);
  job.prepare_host("w2");
  job.pass(1s);
  job.complete_change();
  job.pass(590s);
  EXPECT_EQ(job.state().hosts.at("w2").failures, 1);
  job.pass(11s);
  EXPECT_EQ(job.state().hosts.at("w2").failures, 0);
}

TEST(DecideFailure, TheSlotIsNotUsedAgainWhileTheOldProcessLives) {
  Job job;
  job.run_on({"w1", "w2"});
  const WorkerId lost = job.worker_on("w2");
  job.say(lost, Left{.how = Left::How::failed, .reason = "disk full", .position = {}});
  job.freeze();
  job.complete_change();
  job.take_all();
  job.pass(10s);
  EXPECT_TRUE(started(job.all()).empty());
  job.feed(exited(lost, 1));
  EXPECT_EQ(started(job.actions()), Names{"w2"});
}

TEST(DecideFailure, TheFirstFailureIsRememberedWithItsLastWords) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId first = job.worker_on("w2");
  job.feed(WorkerExited{.worker = first, .exit_code = 0, .signal = 11, .last_lines = {"about to crash"}});
  job.feed(exited(job.worker_on("w3"), 1));
  ASSERT_TRUE(job.state().first_failure);
  EXPECT_EQ(job.state().first_failure->worker, first);
  EXPECT_EQ(job.state().first_failure->rank, 1);
  EXPECT_EQ(job.state().first_failure->reason, "it was killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(job.state().first_failure->last_lines, Names{"about to crash"});
}

TEST(DecideFailure, LastWordsOfAnEvictedWorkerComeWithItsEnd) {
  Job job;
  job.run_on({"w1", "w2"});
  const WorkerId lost = job.worker_on("w2");
  job.silent = {lost};
  job.pass(4s);
  ASSERT_TRUE(job.state().first_failure && !job.state().first_failure->lines_shown);
  job.feed(WorkerExited{.worker = lost, .exit_code = 0, .signal = 9, .last_lines = {"stack of thread 1"}});
  EXPECT_EQ(job.state().first_failure->last_lines, Names{"stack of thread 1"});
  EXPECT_TRUE(job.state().first_failure->lines_shown);
}

TEST(DecideFailure, AFailureThatAWorkerReportsItselfHasItsLastLinesInTheEvent) {
  Job job;
  job.run_on({"w1", "w2"});
  const WorkerId lost = job.worker_on("w2");
  job.say(lost, Left{.how = Left::How::failed, .reason = "exit code 7", .position = {}, .last_lines = {"why"}});
  const auto failed = events(job.actions(), EventKind::failed);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].at("last_lines").dump(), "[\"why\"]");
}

TEST(DecideFailure, AnAgentThatIsGoneTakesItsWorkersWithItAsOneFailure) {
  Job job;
  job.feed(HostsWanted{.hosts = {host_line("w1", 2), host_line("w2")}});
  job.host_up("w1");
  const std::vector<WorkerId> slots = job.state().hosts.at("w1").slots;
  for (const WorkerId id : slots)
    job.say(id, Hello{.pid = 1, .data = comm::PeerAddress{"10.0.0.1", 1}, .fingerprint = "same"});
  for (const WorkerId id : slots) job.say(id, Ready{});
  job.prepare_host("w2");
  job.complete_change();
  job.feed(HostDown{"w1", "connection reset"});
  EXPECT_EQ(receivers<Freeze>(job.actions()), std::vector<WorkerId>{job.worker_on("w2")});
  EXPECT_TRUE(of_kind<KillWorker>(job.actions()).empty());
  EXPECT_EQ(job.state().hosts.at("w1").failures, 1);
  EXPECT_EQ(job.state().workers.size(), 1u);
}

TEST(DecideFailure, MessagesFromEvictedUnknownAndPastChangeNothing) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId dead = job.worker_on("w3");
  job.silent = {dead};
  job.pass(4s);
  job.freeze();
  job.complete_change();
  const TrainingPosition far{true, 9, 9, 9};
  for (const FromWorker& message :
       std::vector<FromWorker>{Ready{far}, Meshed{2, {}}, Frozen{2, far}, Lost{2, far, "?"}, Entered{2, far},
                               Progress{.generation = 2, .position = far}, AskLeave{"?"}, left(Left::How::done)}) {
    for (const WorkerId nobody : {dead, WorkerId{77}}) {
      job.say(nobody, message);
      EXPECT_TRUE(job.actions().empty());
    }
  }
  job.say(job.worker_on("w1"), Lost{1, far, "an echo of generation 1"});
  job.say(job.worker_on("w1"), Frozen{1, far});
  EXPECT_FALSE(job.state().freezing);
  EXPECT_EQ(job.worker("w1").position, (TrainingPosition{true, 0, 2, 2}));
}

TEST(DecideFailure, BelowTheMinimumThoseLeftHoldTheirStateUntilSomebodyComes) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  policy.quarantine_base = 3'600s;
  policy.quarantine_cap = 3'600s;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.freeze();
  EXPECT_FALSE(job.state().change);
  EXPECT_EQ(events(job.all(), EventKind::hold).size(), 1u);
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->members, (std::vector<WorkerId>{job.worker_on("w1"), job.worker_on("w3")}));
  job.complete_change();
  EXPECT_FALSE(job.state().freezing);
}

bool says(const Job& job, const std::string& words) {
  return std::ranges::any_of(of_kind<Say>(job.all()), [&](const Say& say) {
    return (say.text + " " + say.hint).find(words) != std::string::npos;
  });
}

TEST(DecideFailure, TheLossOfAllWorkersIsNotCalledALossThatOthersSurvive) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  EXPECT_TRUE(says(job, "the others continue"));
  job.take_all();
  job.feed(exited(job.worker_on("w2"), 0, 9));
  EXPECT_FALSE(says(job, "the others continue"));
  EXPECT_TRUE(says(job, "training continues from the last checkpoint"));
  job.pass(1s);
  EXPECT_FALSE(says(job, "keep their state in memory"));
}

TEST(DecideFailure, AHoldIsReportedOnceNoWorkerIsOnItsWay) {
  Job job;
  job.run_on({"w1"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  ASSERT_EQ(events(job.all(), EventKind::hold).size(), 1u);
  EXPECT_FALSE(says(job, "waiting with")) << "w1 is started again at once";
  job.feed(exited(job.worker_on("w1"), 1));
  EXPECT_TRUE(says(job, "waiting with 0 workers of at least 1"));
  EXPECT_TRUE(says(job, "add hosts; the job stops after 600 s"));
}

TEST(DecideFailure, AHoldThatLastsTooLongEndsWithACheckpointAndExit75) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  policy.quarantine_base = policy.quarantine_cap = 3'600s;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.freeze();
  job.pass(601s);
  const auto stops = sent<Stop>(job.all());
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_TRUE(stops[0].second.save);
  const WorkerId last = job.worker_on("w1");
  job.say(last, left(Left::How::stopped));
  job.feed(exited(last, 75));
  for (const char* host : {"w1", "w2"}) job.feed(HostDown{host, "closed"});
  const auto finish = of_kind<Finish>(job.all());
  ASSERT_EQ(finish.size(), 1u);
  EXPECT_EQ(finish[0].exit_code, ExitCode::resumable);
}

TEST(DecideFailure, LeavingBelowTheMinimumHoldsTheRestAndLetsTheLeaverGo) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  const WorkerId leaver = job.worker_on("w1");
  job.want({"w2"});
  job.pass(1s);
  EXPECT_EQ(receivers<Freeze>(job.all()).size(), 2u);
  job.freeze();
  EXPECT_EQ(receivers<Leave>(job.all()), std::vector<WorkerId>{leaver});
  EXPECT_EQ(logged(job.all()), "-w1");
  EXPECT_EQ(job.ranks(), Names{"w2"});
}

TEST(DecideFailure, WhenAllAreRemovedTheyHoldTheirStateForWhoComes) {
  Job job;
  job.run_on({"w1"});
  job.want({}, true);
  job.pass(1s);
  job.freeze();
  job.pass(10s);
  EXPECT_FALSE(job.state().change);
  EXPECT_TRUE(sent<Leave>(job.all()).empty());
  job.want({"w2"}, true);
  job.prepare_host("w2");
  job.complete_change();
  EXPECT_EQ(job.ranks(), (Names{"w1", "w2"}));
  job.pass(1s);
  job.complete_change();
  EXPECT_EQ(job.ranks(), Names{"w2"});
}

TEST(DecideFailure, WhenAllStateIsLostEverybodyStartsAgainTogether) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.feed(exited(job.worker_on("w2"), 0, 9));
  EXPECT_EQ(events(job.all(), EventKind::hold).size(), 1u);
  job.pass(6s);
  for (const char* host : {"w1", "w2"}) job.prepare_host(host);
  ASSERT_TRUE(job.state().change);
  job.complete_change();
  EXPECT_EQ(job.ranks(), (Names{"w1", "w2"}));
}

TEST(DecideFailure, TheFirstFailureEndsAFixedJob) {
  Job job{Policy{}};
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 3));
  const WorkerId other = job.worker_on("w1");
  ASSERT_EQ(of_kind<KillWorker>(job.actions()).size(), 1u);
  job.feed(exited(other, 0, 9));
  EXPECT_EQ(of_kind<EndHost>(job.actions()).size(), 2u);
  for (const char* host : {"w1", "w2"}) job.feed(HostDown{host, "closed"});
  const auto finish = of_kind<Finish>(job.actions());
  ASSERT_EQ(finish.size(), 1u);
  EXPECT_EQ(finish[0].exit_code, ExitCode::failed);
  EXPECT_NE(finish[0].reason.find("w2: it ended with exit code 3"), std::string::npos) << finish[0].reason;
}

TEST(DecideFailure, AJobThatFailsAgainAndAgainWithoutGettingFurtherStopsWith93) {
  Policy policy = elastic_policy();
  policy.fruitless_limit = 3;
  Job job(policy);
  job.run_on({"w1", "w2"});
  while (!job.state().ending && job.state().next_generation < 20) {
    job.say(job.worker_on("w1"), Lost{job.state().current->number, {true, 0, 1, 1}, "no route to rank 1"});
    job.freeze();
    if (job.state().change) job.mesh();
    if (!job.state().ending) job.enter();
  }
  ASSERT_TRUE(job.state().ending);
  EXPECT_EQ(job.state().ending->exit_code, ExitCode::no_progress);
  EXPECT_EQ(job.state().next_generation, 5u);
}

TEST(DecideFailure, ALimitOfFailuresStopsTheJob) {
  Policy policy = elastic_policy();
  policy.failure_limit = 1;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w3"), 1));
  job.feed(exited(job.worker_on("w2"), 1));
  ASSERT_TRUE(job.state().ending);
  EXPECT_EQ(job.state().ending->exit_code, ExitCode::failed);
  EXPECT_TRUE(sent<Stop>(job.actions()).empty()) << "who is not frozen yet is told later, when it is known who saves";
  job.freeze();
  ASSERT_EQ(sent<Stop>(job.actions()).size(), 1u);
  EXPECT_TRUE(sent<Stop>(job.actions())[0].second.save);
}

}  // namespace
}  // namespace dtrain::elastic
