#include <algorithm>

#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

void end_process(Job& job, WorkerId worker, Left::How how, int exit_code) {
  job.say(worker, left(how));
  job.feed(exited(worker, exit_code));
}

void close_agents(Job& job) {
  std::vector<std::string> names;
  for (const auto& [name, host] : job.state().hosts) names.push_back(name);
  for (const std::string& name : names) job.feed(HostDown{name, "closed"});
}

std::optional<Finish> finish_of(const Job& job) {
  const auto found = of_kind<Finish>(job.all());
  EXPECT_LE(found.size(), 1u);
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

TEST(DecideEnding, WhenAllAreDoneTheJobIs) {
  Job job;
  job.run_on({"w1", "w2"});
  const std::vector<WorkerId> members = job.state().current->members;
  for (const WorkerId id : members) end_process(job, id, Left::How::done, 0);
  EXPECT_FALSE(finish_of(job)) << "agents are still there";
  close_agents(job);
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::ok);
}

TEST(DecideEnding, WhoStillPreparesWhenTrainingIsCompleteMayGo) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w2");
  job.host_up("w3");
  const WorkerId ready = job.worker_on("w2"), starting = job.worker_on("w3");
  job.say(job.worker_on("w1"), left(Left::How::done));
  EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{ready});
  EXPECT_EQ(of_kind<KillWorker>(job.actions()).at(0).worker, starting);
}

// The checkpoint is written before any rank can be done, so rank 0, w1, is not needed either.
TEST(DecideEnding, ARankThatDiesAfterTheFirstIsDoneDoesNotSpoilTheResult) {
  for (const auto& [done, dies] : {std::pair("w1", "w3"), std::pair("w3", "w1")}) {
    Job job;
    job.run_on({"w1", "w2", "w3"});
    const WorkerId killed = job.worker_on(dies), second = job.worker_on("w2");
    end_process(job, job.worker_on(done), Left::How::done, 0);
    job.feed(exited(killed, 0, 9));
    job.say(second, Frozen{1, {true, 1, 0, 9}});
    EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{second});
    end_process(job, second, Left::How::removed, 0);
    close_agents(job);
    EXPECT_EQ(finish_of(job)->exit_code, ExitCode::ok);
  }
}

TEST(DecideEnding, AStopIsAskedOfAllAndEndsWith75) {
  Job job;
  job.run_on({"w1", "w2"});
  const std::vector<WorkerId> members = job.state().current->members;
  job.feed(StopAsked{"dtrain stop"});
  EXPECT_EQ(receivers<Stop>(job.actions()), members);
  job.feed(StopAsked{"dtrain stop"});
  EXPECT_TRUE(of_kind<Send>(job.actions()).empty());
  for (const WorkerId id : members) end_process(job, id, Left::How::stopped, 75);
  close_agents(job);
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::resumable);
  EXPECT_EQ(finish_of(job)->reason, "dtrain stop");
}

TEST(DecideEnding, IsRecordedWithItsExitCode) {
  Job job;
  job.run_on({"w1"});
  job.feed(StopAsked{"no progress", false, ExitCode::no_progress});
  job.feed(StopAsked{"no progress", true, ExitCode::no_progress});
  for (const EventKind kind : {EventKind::stop, EventKind::end_at_once}) {
    const auto found = events(job.all(), kind);
    ASSERT_EQ(found.size(), 1u) << enum_name(kEventKindNames, kind);
    EXPECT_EQ(found[0].at("exit_code").as_integer(), 93) << enum_name(kEventKindNames, kind);
  }
}

TEST(DecideEnding, OfThoseWhoHoldOnlyTheFurthestSaves) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w2 = job.worker_on("w2"), w3 = job.worker_on("w3");
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.feed(StopAsked{"dtrain stop"});
  job.say(w2, Frozen{1, {true, 0, 7, 7}});
  EXPECT_TRUE(sent<Stop>(job.all()).empty());
  job.say(w3, Frozen{1, {true, 0, 8, 8}});
  const auto first = sent<Stop>(job.actions());
  ASSERT_EQ(first.size(), 1u) << "the other one keeps its state until it is written";
  EXPECT_EQ(first[0].first, w3);
  EXPECT_TRUE(first[0].second.save);
  job.say(w3, left(Left::How::stopped));
  const auto second = sent<Stop>(job.actions());
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].first, w2);
  EXPECT_FALSE(second[0].second.save);
}

TEST(DecideEnding, TheNextOfThoseWhoHoldSavesWhenTheFurthestDies) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w2 = job.worker_on("w2"), w3 = job.worker_on("w3");
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.feed(StopAsked{"dtrain stop"});
  job.say(w2, Frozen{1, {true, 0, 7, 7}});
  job.say(w3, Frozen{1, {true, 0, 8, 8}});
  job.feed(exited(w3, 0, 9));
  const auto stops = sent<Stop>(job.actions());
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].first, w2);
  EXPECT_TRUE(stops[0].second.save);
}

// Its disk may be full, and the next one's not.
TEST(DecideEnding, TheNextOfThoseWhoHoldSavesWhenTheFurthestCannotWrite) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w2 = job.worker_on("w2"), w3 = job.worker_on("w3");
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.feed(StopAsked{"dtrain stop"});
  job.say(w2, Frozen{1, {true, 0, 7, 7}});
  job.say(w3, Frozen{1, {true, 0, 8, 8}});
  job.say(w3, Report{make_event(EventKind::lost, {{"message", "no space left on device"}})});
  job.say(w3, left(Left::How::stopped));
  const auto stops = sent<Stop>(job.actions());
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].first, w2);
  EXPECT_TRUE(stops[0].second.save);
}

// Each of them would save, because it has Stop already and loses the others.
TEST(DecideEnding, OfThoseWhoLoseEachOtherOnTheWayToAStopOnlyTheFurthestSaves) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w2 = job.worker_on("w2"), w3 = job.worker_on("w3");
  job.feed(StopAsked{"dtrain stop"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.say(w2, Frozen{1, {true, 0, 7, 7}});
  job.say(w3, Frozen{1, {true, 0, 8, 8}});
  const auto stops = sent<Stop>(job.actions());
  ASSERT_EQ(stops.size(), 2u);
  EXPECT_EQ(stops[0].first, w3);
  EXPECT_TRUE(stops[0].second.save);
  EXPECT_FALSE(stops[1].second.save);
}

// Its session is silent after its last message, so it answers no Freeze.
TEST(DecideEnding, AFreezeDoesNotWaitForARankThatHasStopped) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w3 = job.worker_on("w3");
  job.feed(StopAsked{"dtrain stop"});
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.say(w3, Frozen{1, {true, 0, 7, 7}});
  EXPECT_TRUE(sent<Stop>(job.actions()).empty());
  job.say(job.worker_on("w1"), left(Left::How::stopped));
  EXPECT_EQ(receivers<Stop>(job.actions()), std::vector<WorkerId>{w3});
}

// A rank may be done while another one still waits in the last collective, which the freeze breaks off.
TEST(DecideEnding, WhoFrozeBeforeTheFirstIsDoneMayGoAtOnce) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w1 = job.worker_on("w1"), w3 = job.worker_on("w3");
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.say(w3, Frozen{1, {true, 1, 0, 9}});
  job.say(w1, left(Left::How::done));
  EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{w3});
  end_process(job, w3, Left::How::removed, 0);
  EXPECT_EQ(events(job.all(), EventKind::failed).size(), 1u) << "of w2 only";
  job.feed(exited(w1));
  close_agents(job);
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::ok);
}

TEST(DecideEnding, WhoWaitsForTheNextGenerationMayGoWhenTheFirstIsDone) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  const WorkerId w3 = job.worker_on("w3");
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.freeze();
  ASSERT_TRUE(job.state().change);
  job.say(job.worker_on("w1"), left(Left::How::done));
  EXPECT_FALSE(job.state().change);
  EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{w3});
}

// Its last message went to the coordinator before this one, which knows from the events that training is complete.
TEST(DecideEnding, AWorkerThatWasDoneBeforeATakeoverHasNotFailed) {
  Policy policy = elastic_policy();
  policy.quorum = true;
  Job job(policy);
  job.run_on({"w1"});
  job.take_over({"w1"}, recorded_origin(job.state()));
  job.take_all();
  job.feed(StopAsked{"training is complete", false, ExitCode::ok});
  job.feed(exited(job.worker_on("w1")));
  close_agents(job);
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::ok);
  EXPECT_TRUE(started(job.all()).empty());
  EXPECT_TRUE(events(job.all(), EventKind::failed).empty());
}

// Until its process ends it says nothing more.
TEST(DecideEnding, AWorkerThatWasDoneBeforeATakeoverHasTimeToEnd) {
  Policy policy = elastic_policy();
  policy.quorum = true;
  Job job(policy);
  job.run_on({"w1", "w2"});
  const WorkerId w1 = job.worker_on("w1"), w2 = job.worker_on("w2");
  Origin origin = recorded_origin(job.state());
  origin.earlier.done = {w1};
  job.take_over({"w1", "w2"}, origin);
  job.take_all();
  job.feed(StopAsked{kTrainingIsComplete, false, ExitCode::ok});
  job.silent = {w1};
  job.say(w2, Frozen{job.state().freezing->number, job.worker("w2").position});
  EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{w2});
  end_process(job, w2, Left::How::removed, 0);
  job.pass(20s);
  EXPECT_TRUE(events(job.all(), EventKind::failed).empty());
  EXPECT_TRUE(of_kind<KillWorker>(job.all()).empty());
  job.feed(exited(w1));
  close_agents(job);
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::ok);
}

Policy with_quorum() {
  Policy policy = elastic_policy();
  policy.quorum = true;
  return policy;
}

void hold_after_a_takeover(Job& job) {
  job.run_on({"w1", "w2", "w3"});
  job.take_over({"w1", "w2", "w3"}, recorded_origin(job.state()));
  job.freeze();
}

TEST(DecideEnding, OfThoseWhoHoldSinceATakeoverOnlyTheFurthestSaves) {
  Job job(with_quorum());
  hold_after_a_takeover(job);
  const auto stops = sent<Stop>(job.feed(StopAsked{"dtrain stop"}));
  ASSERT_EQ(stops.size(), 1u) << "the others keep their state until it is written";
  EXPECT_TRUE(stops[0].second.save);
}

const Left kDiverged{
    .how = Left::How::failed, .reason = "bad loss", .position = {}, .job_exit_code = 93, .hint = "less"};

// Its loss was not finite, and the weights of the others give it again: a checkpoint of them would replace a good one.
TEST(DecideEnding, AFailureOfTheWholeJobLeavesNoCheckpoint) {
  for (const bool is_frozen_before : {false, true}) {
    Job job;
    job.run_on({"w1", "w2", "w3"});
    const WorkerId w1 = job.worker_on("w1"), w2 = job.worker_on("w2"), w3 = job.worker_on("w3");
    const auto hold = [&] {
      job.say(w2, Lost{1, {true, 0, 1, 1}, "w1 is gone"});
      job.say(w3, Lost{1, {true, 0, 1, 1}, "w1 is gone"});
    };
    if (is_frozen_before) hold();
    job.say(w1, kDiverged);
    if (!is_frozen_before) hold();
    const auto stops = sent<Stop>(job.all());
    for (const WorkerId member : {w2, w3})
      EXPECT_TRUE(std::ranges::any_of(stops, [&](const auto& sent) { return sent.first == member; })) << member;
    for (const auto& [worker, stop] : stops) EXPECT_FALSE(stop.save) << worker;
    ASSERT_EQ(events(job.all(), EventKind::stop).size(), 1u);
    EXPECT_FALSE(events(job.all(), EventKind::stop)[0].at("save").as_bool()) << "for a coordinator that takes over";
    ASSERT_TRUE(job.state().first_failure);
    EXPECT_EQ(job.state().first_failure->hint, "less");
  }
}

TEST(DecideEnding, TheHintIsThatOfTheFailureThatEndsTheJob) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w3"), 0, 9));
  job.freeze();
  job.complete_change();
  job.say(job.worker_on("w1"), kDiverged);
  ASSERT_TRUE(job.state().first_failure);
  EXPECT_EQ(job.state().first_failure->host, "w3") << "what went wrong first";
  EXPECT_EQ(job.state().first_failure->hint, "less");
}

TEST(DecideEnding, AStopWithoutACheckpointStaysOneAfterATakeover) {
  Job job(with_quorum());
  hold_after_a_takeover(job);
  const auto stops =
      sent<Stop>(job.feed(StopAsked{.reason = "bad loss", .exit_code = ExitCode::failed, .save = false}));
  EXPECT_EQ(stops.size(), 3u);
  for (const auto& [worker, stop] : stops) EXPECT_FALSE(stop.save) << worker;
}

TEST(DecideEnding, AStopWhileAChangeIsPreparedGivesTheChangeUp) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.pass(1s);
  job.prepare_host("w2");
  job.feed(StopAsked{"dtrain stop"});
  EXPECT_FALSE(job.state().change);
  EXPECT_EQ(receivers<Leave>(job.actions()), std::vector<WorkerId>{job.worker_on("w2")});
}

TEST(DecideEnding, AtOnceMeansKill) {
  Job job;
  job.run_on({"w1", "w2"});
  const std::vector<WorkerId> members = job.state().current->members;
  job.feed(StopAsked{"dtrain stop"});
  job.feed(StopAsked{"second signal", true});
  EXPECT_EQ(of_kind<KillWorker>(job.actions()).size(), 2u);
  for (const WorkerId id : members) job.feed(exited(id, 0, 9));
  close_agents(job);
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::resumable);
}

TEST(DecideEnding, NeitherAWorkerNorAnAgentThatDoesNotEndKeepsTheJob) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(StopAsked{"dtrain stop"});
  job.pass(301s);
  EXPECT_EQ(of_kind<KillWorker>(job.all()).size(), 2u);
  job.pass(40s);
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::resumable);
}

TEST(DecideEnding, AStopBeforeAnythingRunsEndsAtOnce) {
  Job job;
  job.feed(StopAsked{"interrupted"});
  ASSERT_TRUE(finish_of(job));
  EXPECT_EQ(finish_of(job)->exit_code, ExitCode::resumable);
}

TEST(DecideEnding, AStoppedWorkerThatNobodyAskedStopsTheJob) {
  Job job;
  job.run_on({"w1", "w2"});
  job.say(job.worker_on("w1"), left(Left::How::stopped));
  EXPECT_EQ(receivers<Stop>(job.actions()), std::vector<WorkerId>{job.worker_on("w2")});
}

TEST(DecideEnding, NothingIsStartedOnceTheJobEnds) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(StopAsked{"dtrain stop"});
  job.take_all();
  job.feed(exited(job.worker_on("w2"), 1));
  job.want({"w1", "w2", "w3"});
  job.pass(60s);
  EXPECT_TRUE(of_kind<StartHost>(job.all()).empty());
  EXPECT_TRUE(started(job.all()).empty());
}

}  // namespace
}  // namespace dtrain::elastic
