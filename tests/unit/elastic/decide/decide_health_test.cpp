#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

Names evicted(const Job& job) {
  Names hosts;
  for (const Json& event : events(job.all(), EventKind::failed)) hosts.push_back(event.at("host").as_string());
  return hosts;
}

// Every member reports this phase, except one.
void all_in(Job& job, Phase phase, double seconds, const std::string& host, Phase other, double other_seconds) {
  for (const std::string& name : job.ranks()) {
    const bool is_other = name == host;
    job.beat(job.worker_on(name), is_other ? other : phase, is_other ? other_seconds : seconds);
  }
  job.feed(Tick{});
}

TEST(DecideHealth, SilenceOfThreeSecondsIsALoss) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.silent = {job.worker_on("w2")};
  job.pass(2900ms);
  EXPECT_TRUE(evicted(job).empty());
  job.pass(200ms);
  EXPECT_EQ(evicted(job), Names{"w2"});
  EXPECT_TRUE(of_kind<KillWorker>(job.all()).at(0).dump_stack);
}

TEST(DecideHealth, SeveralSilentOnesAreOneFreezeOfTheRest) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.silent = {job.worker_on("w1"), job.worker_on("w2")};
  job.pass(3100ms);
  EXPECT_EQ(receivers<Freeze>(job.all()), std::vector<WorkerId>{job.worker_on("w3")});
}

TEST(DecideHealth, ACoordinatorThatWasHeldUpBlamesNobody) {
  Job job;
  job.run_on({"w1", "w2"});
  job.pass(1s);
  job.stall(60s);
  job.feed(Tick{});
  EXPECT_TRUE(evicted(job).empty());
  job.silent = {job.worker_on("w1")};
  job.pass(3100ms);
  EXPECT_EQ(evicted(job), Names{"w1"});
}

TEST(DecideHealth, WhenEverybodyIsSilentItIsRatherUs) {
  Job job;
  job.run_on({"w1", "w2"});
  job.silent = {job.worker_on("w1"), job.worker_on("w2")};
  job.pass(10s);
  EXPECT_TRUE(evicted(job).empty());
  job.pass(6s);
  EXPECT_EQ(evicted(job).size(), 2u);
}

TEST(DecideHealth, TheLastHolderOfTheStateGetsMoreTime) {
  Job job;
  job.run_on({"w1"});
  job.silent = {job.worker_on("w1")};
  job.pass(14s);
  EXPECT_TRUE(evicted(job).empty());
  job.pass(2s);
  EXPECT_EQ(evicted(job), Names{"w1"});
}

TEST(DecideHealth, WhoIsLetInAndDoesNotComeIsEvicted) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w3"), 0, 9));
  job.freeze();
  job.mesh();
  job.say(job.worker_on("w1"), Progress{.generation = 2, .phase = Phase::entering, .position = {true, 0, 1, 1}});
  job.silent = {job.worker_on("w1")};  // its heartbeats would report the old generation
  const WorkerId absent = job.worker_on("w2");
  job.pass(2s);
  for (int i = 0; i < 32; ++i) {
    if (i < 28) {
      EXPECT_EQ(job.state().workers.at(absent).phase, WorkerPhase::member);
    }
    job.say(job.worker_on("w1"), Progress{.generation = 2, .phase = Phase::entering, .position = {true, 0, 1, 1}});
    job.pass(2s);
  }
  EXPECT_EQ(job.state().workers.at(absent).phase, WorkerPhase::ending);
  EXPECT_EQ(job.worker("w1").phase, WorkerPhase::member);
}

TEST(DecideHealth, WhoIsLetInAgainAndAgainAndNeverComesIsEvicted) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w3"), 0, 9));
  const WorkerId waiting = job.worker_on("w1"), absent = job.worker_on("w2");
  job.silent = {waiting};  // its heartbeats would report the old generation
  for (int round = 0; round < 3 && job.worker("w2").phase == WorkerPhase::member; ++round) {
    job.freeze();
    job.mesh();
    const Generation number = job.state().current->number;
    const Progress entering{.generation = number, .phase = Phase::entering, .position = {true, 0, 1, 1}};
    for (int i = 0; i < 15; ++i) {  // --comm-timeout
      job.say(waiting, entering);
      job.pass(2s);
    }
    job.say(waiting, Lost{number, {true, 0, 1, 1}, "w2 did not answer in time"});
  }
  EXPECT_EQ(job.state().workers.at(absent).phase, WorkerPhase::ending);
  EXPECT_EQ(job.worker("w1").phase, WorkerPhase::member);
}

TEST(DecideHealth, WhoIsLetInAndStillSavesHasTheTimeOfASave) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w3"), 0, 9));
  job.freeze();
  job.mesh();
  const WorkerId entered = job.worker_on("w1"), saving = job.worker_on("w2");
  job.silent = {entered};  // its heartbeats would report the old generation
  const auto wait = [&](Duration time) {
    for (const Time end = job.now() + time; job.now() < end;) {
      job.say(entered, Progress{.generation = 2, .phase = Phase::entering, .position = {true, 0, 1, 1}});
      job.pass(2s);
    }
  };
  job.beat(saving, Phase::saving, 0);
  wait(100s);
  EXPECT_EQ(job.state().workers.at(saving).phase, WorkerPhase::member);
  job.beat(saving, Phase::saving, 301);
  job.feed(Tick{});
  EXPECT_EQ(job.state().workers.at(saving).phase, WorkerPhase::ending);
  EXPECT_EQ(job.worker("w1").phase, WorkerPhase::member);
}

TEST(DecideHealth, ANewcomerThatWaitsForTheOneWhoDoesNotComeIsNotToBlame) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.freeze();
  job.mesh();
  const WorkerId newcomer = job.worker_on("w3"), stuck = job.worker_on("w1");
  job.silent = {newcomer};  // its heartbeats would report no generation
  for (double second = 0; second < 64; second += 0.5) {
    job.beat(stuck, Phase::reducing, second);
    job.say(newcomer,
            Progress{.generation = 2, .phase = Phase::entering, .position = {}, .seconds_in_phase = second + 0.5});
    job.pass(500ms);
  }
  EXPECT_EQ(job.state().workers.at(stuck).phase, WorkerPhase::ending);
  EXPECT_EQ(job.state().workers.at(newcomer).phase, WorkerPhase::member);
}

TEST(DecideHealth, ANewcomerThatFallsSilentIsLostWithoutDisturbance) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.host_up("w3");
  job.hello("w3");
  job.silent = {job.worker_on("w3")};
  job.pass(4s);
  EXPECT_EQ(evicted(job), Names{"w3"});
  EXPECT_TRUE(of_kind<Send>(job.all()).empty());
}

TEST(DecideHealth, AHangIsJudgedByItsPhaseAndWaitersAreNotToBlame) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  all_in(job, Phase::reducing, 19, "w2", Phase::loading, 19);
  EXPECT_TRUE(evicted(job).empty());
  all_in(job, Phase::reducing, 21, "w2", Phase::loading, 21);
  EXPECT_EQ(evicted(job), Names{"w2"});
  EXPECT_TRUE(of_kind<KillWorker>(job.all()).at(0).dump_stack);
}

TEST(DecideHealth, TheFirstStepOfAWorkerMayTakeLonger) {
  Job job;
  job.want({"w1", "w2"});
  for (const char* host : {"w1", "w2"}) job.prepare_host(host);
  job.mesh();
  job.enter();
  all_in(job, Phase::reducing, 100, "w2", Phase::computing, 100);
  EXPECT_TRUE(evicted(job).empty());
  all_in(job, Phase::reducing, 121, "w2", Phase::computing, 121);
  EXPECT_EQ(evicted(job), Names{"w2"});
}

TEST(DecideHealth, SlowJobsHaveLongerLimitsByTheirOwnStepTimes) {
  Job job;
  job.run_on({"w1", "w2"});
  for (int i = 0; i < 10; ++i) {
    ++job.step;
    for (const std::string& name : job.ranks()) {
      job.say(job.worker_on(name), Progress{.generation = 1,
                                            .phase = Phase::computing,
                                            .position = {true, 0, job.step, job.step},
                                            .seconds_in_phase = 0,
                                            .step_seconds = 4.0,
                                            .compute_seconds = 3.9});
    }
  }
  all_in(job, Phase::reducing, 70, "w2", Phase::computing, 70);
  EXPECT_TRUE(evicted(job).empty());
  all_in(job, Phase::reducing, 81, "w2", Phase::computing, 81);
  EXPECT_EQ(evicted(job), Names{"w2"});
}

TEST(DecideHealth, WhoIsBehindTheOthersWhileAllWaitIsToBlame) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  ++job.step;
  for (const char* host : {"w1", "w3"}) {
    job.say(job.worker_on(host), Progress{.generation = 1, .phase = Phase::reducing, .position = {true, 0, 2, 2}});
  }
  all_in(job, Phase::reducing, 61, "w2", Phase::reducing, 61);
  EXPECT_EQ(evicted(job), Names{"w2"});
}

TEST(DecideHealth, WhenAllHangAlikeTheyGetFiveTimesAsLong) {
  Job job;
  job.run_on({"w1", "w2"});
  all_in(job, Phase::loading, 90, "w2", Phase::loading, 90);
  EXPECT_TRUE(evicted(job).empty());
  all_in(job, Phase::loading, 101, "w2", Phase::loading, 101);
  EXPECT_EQ(evicted(job).size(), 2u);
}

TEST(DecideHealth, LongEvaluationsThatEndedWellAreNormal) {
  Job job;
  job.run_on({"w1", "w2"});
  all_in(job, Phase::reducing, 0, "w2", Phase::evaluating, 50);
  all_in(job, Phase::reducing, 0, "w2", Phase::loading, 0);
  all_in(job, Phase::reducing, 0, "w2", Phase::evaluating, 240);
  EXPECT_TRUE(evicted(job).empty());
  all_in(job, Phase::reducing, 0, "w2", Phase::evaluating, 260);
  EXPECT_EQ(evicted(job), Names{"w2"});
}

TEST(DecideHealth, AProcessThatNeverConnectsAndOneThatIsNeverReadyAreLost) {
  Policy policy = elastic_policy();
  policy.prepare_timeout = 100s;
  Job job(policy);
  job.run_on({"w1"});
  job.want({"w1", "w2", "w3"});
  job.host_up("w2");
  job.host_up("w3");
  job.hello("w3");
  job.pass(31s);
  EXPECT_EQ(evicted(job), Names{"w2"});
  job.pass(70s);
  EXPECT_EQ(evicted(job), (Names{"w2", "w3"}));
}

TEST(DecideHealth, AnAgentThatNeverConnectsIsTriedAgain) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.take_all();
  job.pass(61s);
  EXPECT_EQ(events(job.all(), EventKind::host_down).size(), 1u);
  job.pass(6s);
  EXPECT_EQ(of_kind<StartHost>(job.all()).size(), 1u);
  EXPECT_FALSE(job.state().freezing);
}

TEST(DecideHealth, AProcessThatCannotBeKilledCostsItsHost) {
  Job job;
  job.run_on({"w1", "w2"});
  const WorkerId undead = job.worker_on("w2");
  job.silent = {undead};
  job.pass(4s);
  job.freeze();
  job.complete_change();
  job.pass(16s);
  EXPECT_EQ(of_kind<EndHost>(job.all()).size(), 1u);
  EXPECT_EQ(job.state().workers.count(undead), 0u);
}

// A newcomer on w3 is let into the generation of w1 and w2, which wait for it.
void let_newcomer_in(Job& job) {
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.pass(1s);
  job.mesh();
  for (const char* host : {"w1", "w2"}) {
    job.say(job.worker_on(host), Entered{job.state().change ? job.state().change->number : job.state().current->number,
                                         {true, 0, job.step, job.step}});
  }
}

TEST(DecideHealth, ANewcomerThatFallsSilentWhereOthersWaitIsEvictedSooner) {
  Job job;
  let_newcomer_in(job);
  job.silent = {job.worker_on("w3")};
  job.pass(900ms);
  EXPECT_TRUE(evicted(job).empty());
  job.pass(200ms);
  EXPECT_EQ(evicted(job), Names{"w3"});
}

TEST(DecideHealth, OthersDoNotBeginToWaitForANewcomerThatIsSilent) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  job.silent = {job.worker_on("w3")};
  job.say(job.worker_on("w3"), Meshed{job.state().change->number, {}});
  job.pass(1100ms);
  job.mesh_of({"w1", "w2"});
  job.pass(500ms);
  EXPECT_FALSE(job.state().change->committed);
  job.beat(job.worker_on("w3"));
  job.feed(Tick{});
  EXPECT_TRUE(job.state().change->committed);
}

TEST(DecideHealth, TheEventOfARecoverySaysHowLongItTookToNotice) {
  Job job;
  job.run_on({"w1", "w2"});
  job.pass(1s);
  job.silent = {job.worker_on("w2")};
  job.pass(3s);
  job.freeze();
  job.complete_change();
  const auto found = events(job.all(), EventKind::generation);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].at("seconds").at("detect").as_number(), 3.0, 0.2);
  EXPECT_NEAR(found[0].at("pause_seconds").as_number(), 3.0, 0.2);
}

TEST(DecideHealth, AddsUpWhatAllWorkersHaveSent) {
  Job job;
  job.run_on({"w1", "w2"});
  const auto says = [&](const char* host, comm::Traffic traffic) {
    job.say(
        job.worker_on(host),
        Progress{
            .generation = 1, .phase = Phase::computing, .position = {true, 0, job.step, job.step}, .traffic = traffic});
  };
  says("w1", {100, 10});
  says("w2", {10, 100});
  says("w1", {150, 20});
  EXPECT_EQ(job.state().traffic, (comm::Traffic{160, 120}));
}

}  // namespace
}  // namespace dtrain::elastic
