#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

TEST(DecideStart, EveryWantedHostGetsAnAgentThenAProcessForEachSlot) {
  Job job;
  job.feed(HostsWanted{.hosts = {host_line("w1", 2), host_line("w2")}});
  EXPECT_EQ(of_kind<StartHost>(job.actions()).size(), 2u);
  EXPECT_TRUE(started(job.actions()).empty());
  job.host_up("w1");
  EXPECT_EQ(started(job.actions()), (Names{"w1", "w1"}));
}

TEST(DecideStart, TheFirstGenerationWaitsForWhoIsNearlyThere) {
  Job job;
  job.want({"w1", "w2"});
  job.prepare_host("w1");
  EXPECT_FALSE(job.state().change);
  job.prepare_host("w2");
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(receivers<Prepare>(job.actions()).size(), 2u);
}

TEST(DecideStart, ButNotForEver) {
  Job job;
  job.want({"w1", "w2"});
  job.prepare_host("w1");
  job.pass(20s);
  EXPECT_FALSE(job.state().change);
  job.pass(15s);
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->members, std::vector<WorkerId>{job.worker_on("w1")});
}

TEST(DecideStart, AJobThatCannotReachItsMinimumSaysSoOnce) {
  Policy policy = elastic_policy();
  policy.min_workers = 3;
  Job job(policy);
  job.want({"w1", "w2"});
  for (const char* host : {"w1", "w2"}) job.prepare_host(host);
  job.pass(60s);
  EXPECT_FALSE(job.state().change);
  const auto lines = of_kind<Say>(job.all());
  EXPECT_EQ(std::ranges::count(lines, "the job waits: it has 2 workers of at least 3", &Say::text), 1);
}

TEST(DecideStart, AFixedJobWaitsForEverybody) {
  Policy policy;
  policy.prepare_timeout = 3'600s;
  Job job(policy);
  job.want({"w1", "w2"});
  job.prepare_host("w1");
  job.host_up("w2");
  job.hello("w2");
  job.pass(300s);
  EXPECT_FALSE(job.state().change);
  job.ready("w2");
  EXPECT_TRUE(job.state().change);
}

TEST(DecideStart, CommitComesOnlyAfterAllAreConnected) {
  Job job;
  job.want({"w1", "w2"});
  job.prepare_host("w1");
  job.prepare_host("w2");
  job.say(job.worker_on("w1"), Meshed{1, {}});
  job.say(job.worker_on("w1"), Meshed{1, {}});
  EXPECT_TRUE(sent<Commit>(job.all()).empty());
  job.say(job.worker_on("w2"), Meshed{1, {}});
  const auto commits = sent<Commit>(job.actions());
  ASSERT_EQ(commits.size(), 2u);
  EXPECT_EQ(commits[0].second.boundary, Boundary::now);
}

TEST(DecideStart, TheJournalKnowsAGenerationBeforeTheWorkersDo) {
  Job job;
  job.want({"w1"});
  job.prepare_host("w1");
  job.mesh();
  std::vector<std::string> order;
  for (const Action& action : job.all()) {
    if (const auto* entry = std::get_if<JournalEntry>(&action); entry && entry->generation == 1) {
      order.push_back(entry->committed ? "committed" : "begun");
    }
    if (const auto* send = std::get_if<Send>(&action)) {
      order.push_back(std::holds_alternative<Prepare>(send->message) ? "Prepare" : "Commit");
    }
  }
  EXPECT_EQ(order, (Names{"begun", "Prepare", "committed", "Commit"}));
}

TEST(DecideStart, AddedIsLoggedAfterTheFirstFinishedStepAndOnlyOnce) {
  Job job;
  job.want({"w1"});
  job.prepare_host("w1");
  job.mesh();
  job.enter();
  job.beat(job.worker_on("w1"));
  EXPECT_EQ(logged(job.all()), "");
  job.train();
  job.train();
  EXPECT_EQ(logged(job.all()), "+w1");
}

TEST(DecideStart, AddedIsLoggedOfAJobThatIsOverBeforeAHeartbeatToldOfAStep) {
  Job job;
  job.want({"w1", "w2", "idle"});
  for (const char* host : {"w1", "w2", "idle"}) job.prepare_host(host);
  job.mesh();
  job.enter();
  const TrainingPosition end{true, 2, job.step + 9, job.step + 9};
  for (const char* host : {"w1", "w2"})
    job.say(job.worker_on(host), Left{.how = Left::How::done, .reason = {}, .position = end});
  EXPECT_EQ(logged(job.all()), "+w1 +w2");
  job.say(job.worker_on("idle"), Left{.how = Left::How::done, .reason = {}, .position = {true, 0, job.step, job.step}});
  EXPECT_EQ(logged(job.all()), "+w1 +w2") << "it made no step";
}

TEST(DecideStart, ARestartContinuesNumbersAndDoesNotLogAHostTwice) {
  Job job(elastic_policy(), {.next_generation = 7, .next_worker = 40, .logged = {"gone", "w1"}});
  job.want({"w1"});
  EXPECT_EQ(logged(job.all()), "-gone");
  job.prepare_host("w1");
  EXPECT_EQ(job.worker_on("w1"), 40u);
  job.complete_change();
  EXPECT_EQ(job.state().current->number, 7u);
  EXPECT_EQ(logged(job.all()), "-gone");
}

TEST(DecideStart, WhenEveryHostFailsToStartTheJobFailsAtOnceWithTheFirstReason) {
  Job job;
  job.want({"w1", "w2"});
  job.feed(HostDown{"w1", "connection refused"});
  EXPECT_FALSE(job.state().ending);
  job.feed(HostDown{"w2", "no route"});
  const auto finish = of_kind<Finish>(job.actions());
  ASSERT_EQ(finish.size(), 1u);
  EXPECT_EQ(finish[0].exit_code, ExitCode::refused);
  EXPECT_NE(finish[0].reason.find("connection refused"), std::string::npos);
}

TEST(DecideStart, AStartThatFailsOnThisMachineRefusesNothing) {
  Job job;
  job.want({"w1"});
  job.feed(HostDown{"w1", "cannot start a process", true});
  const auto finish = of_kind<Finish>(job.actions());
  ASSERT_EQ(finish.size(), 1u);
  EXPECT_EQ(finish[0].exit_code, ExitCode::failed);
}

TEST(DecideStart, AProcessThatWasNotStartedHasNoExitCode) {
  Job job(Policy{});
  job.want({"w1"});
  job.host_up("w1");
  job.feed(WorkerExited{job.worker_on("w1"), 127, 0, {"no process is to be had"}, false});
  ASSERT_TRUE(job.state().first_failure);
  EXPECT_EQ(job.state().first_failure->reason, "its process was not started: no process is to be had");
  EXPECT_EQ(job.state().first_failure->exit_code, 0);
}

// The last worker that failed would be evicted otherwise.
TEST(DecideStart, AWorkerThatLacksAThreadIsEvictedBeforeThoseThatMissIt) {
  Job job;
  job.want({"w1", "w2"});
  for (const char* host : {"w1", "w2"}) job.prepare_host(host);
  for (int attempt = 0; attempt < 3; ++attempt) {
    for (int i = 0; i < 100 && !job.state().change; ++i) job.pass(100ms);
    ASSERT_TRUE(job.state().change);
    const Generation number = job.state().change->number;
    job.say(job.worker_on("w1"), Meshed{number, "no thread is to be had", true});
    job.say(job.worker_on("w2"), Meshed{number, "rank 0 has not called"});
  }
  ASSERT_TRUE(job.state().first_failure);
  EXPECT_EQ(job.state().first_failure->host, "w1");
  EXPECT_NE(job.state().first_failure->reason.find("no thread is to be had"), std::string::npos);
}

TEST(DecideStart, AWorkerThatWouldComputeOtherBitsIsRefused) {
  Job job;
  job.want({"w1", "w2"});
  job.prepare_host("w1");
  job.host_up("w2");
  const WorkerId other = job.worker_on("w2");
  job.say(other, Hello{.pid = 1, .data = comm::PeerAddress{}, .fingerprint = "another processor"});
  EXPECT_EQ(of_kind<KillWorker>(job.actions()).size(), 1u);
  EXPECT_EQ(job.state().workers.at(other).phase, WorkerPhase::ending);
}

TEST(DecideStart, AnAddressThatMeansAnywhereBecomesTheHostsOwn) {
  Job job;
  job.want({"w1"});
  job.host_up("w1");
  job.say(job.worker_on("w1"), Hello{.pid = 1, .data = comm::PeerAddress{"0.0.0.0", 77}, .fingerprint = "same"});
  EXPECT_EQ(job.worker("w1").data, (comm::PeerAddress{"10.0.0.1", 77}));
}

TEST(DecideStart, WorkerIdsAreReservedInTheJournalBeforeTheyAreUsed) {
  Job job;
  job.want({"w1"});
  job.host_up("w1");
  ASSERT_FALSE(job.actions().empty());
  const auto entries = of_kind<JournalEntry>(job.actions());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_GT(entries[0].next_worker, job.worker_on("w1"));
}

}  // namespace
}  // namespace dtrain::elastic
