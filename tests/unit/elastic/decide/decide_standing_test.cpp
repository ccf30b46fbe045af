// A job that stands still says so, and how long it stood.
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

bool warned_of(const Job& job, std::string_view part) {
  return std::ranges::any_of(of_kind<Say>(job.all()),
                             [&](const Say& say) { return say.text.find(part) != std::string::npos; });
}

JobPhase phase_now(const Job& job) { return standing_of(job.state(), job.now()).phase; }

// Heartbeats of members that wait for each other.
void wait_for_each_other(Job& job, std::chrono::seconds time) {
  for (std::chrono::seconds waited{0}; waited < time; waited += 1s) {
    job.pass(1s);
    const std::vector<WorkerId> members = job.state().current->members;
    for (const WorkerId id : members) job.beat(id, Phase::reducing, static_cast<double>(waited.count() + 1));
  }
}

TEST(DecideStanding, TheJobTrainsUntilItsMembersWaitForEachOther) {
  Job job;
  job.run_on({"w1", "w2"});
  job.train();
  EXPECT_EQ(phase_now(job), JobPhase::training);
  EXPECT_EQ(standing_of(job.state(), job.now()).reason, "");
  wait_for_each_other(job, 8s);
  EXPECT_EQ(phase_now(job), JobPhase::training);
  EXPECT_NE(standing_of(job.state(), job.now()).reason.find("no step for"), std::string::npos);
  EXPECT_FALSE(warned_of(job, "all workers wait for each other"));
  wait_for_each_other(job, 5s);
  EXPECT_EQ(phase_now(job), JobPhase::stalled);
  EXPECT_TRUE(warned_of(job, "all workers wait for each other"));
  job.train();
  EXPECT_EQ(phase_now(job), JobPhase::training);
  EXPECT_TRUE(warned_of(job, "training goes on after 13 s"));
}

TEST(DecideStanding, AnEvaluationIsNoStandstill) {
  Job job;
  job.run_on({"w1", "w2"});
  job.train();
  for (int second = 1; second <= 30; ++second) {
    job.pass(1s);
    job.beat(job.worker_on("w1"), Phase::evaluating, second);
    job.beat(job.worker_on("w2"), Phase::reducing, second);
  }
  EXPECT_EQ(phase_now(job), JobPhase::training);
  EXPECT_FALSE(warned_of(job, "no step for"));
}

TEST(DecideStanding, APauseBeginsWhenTheMembersBeganToWait) {
  Job job;
  job.run_on({"w1", "w2"});
  job.train();
  wait_for_each_other(job, 9s);
  job.take_all();
  job.say(job.worker_on("w1"), Lost{job.state().current->number, job.worker("w1").position, "no answer"});
  ASSERT_TRUE(job.state().freezing);
  job.freeze();
  job.complete_change();
  const auto found = events(job.all(), EventKind::generation);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].at("seconds").at("detect").as_number(), 9, 0.2);
  EXPECT_NEAR(found[0].at("pause_seconds").as_number(), 9, 0.2);
}

TEST(DecideStanding, OnlyAPauseThatLastsIsTold) {
  Job job;
  job.run_on({"w1", "w2"});
  job.train();
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.pass(1s);
  EXPECT_EQ(phase_now(job), JobPhase::changing);
  EXPECT_FALSE(warned_of(job, "training has paused"));
  job.pass(2500ms);
  EXPECT_TRUE(warned_of(job, "training has paused for 3 s, and waits for 1 worker to stop with the others"));
}

TEST(DecideStanding, AHoldSaysWhatItWaitsForAndWhenItEnds) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(Drain{"w2", "asked for"});
  job.pass(1s);
  job.freeze();
  job.pass(10s);
  const JobStanding standing = standing_of(job.state(), job.now());
  EXPECT_EQ(standing.phase, JobPhase::waiting);
  EXPECT_EQ(standing.reason, "it has 1 worker of at least 2");
  ASSERT_TRUE(standing.ends);
  EXPECT_LT(*standing.ends, policy.hold_timeout);
  EXPECT_TRUE(warned_of(job, "waiting with 1 worker of at least 2"));
  const Explanation why = explain(job.state(), job.state().hosts.at("w1"), job.now());
  EXPECT_EQ(why.reason, "keeps its state in memory while the job waits");
}

TEST(DecideStanding, ADrainedHostThatIsTakenBackTrainsAgain) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(Drain{"w2", "asked for"});
  job.pass(1s);
  job.complete_change();
  ASSERT_EQ(job.ranks(), std::vector<std::string>{"w1"});
  EXPECT_EQ(explain(job.state(), job.state().hosts.at("w2"), job.now()).reason.find("is leaving"), 0u);
  job.feed(Undrain{{"w2", "w9"}});
  const auto listed = events(job.actions(), EventKind::hosts);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].at("added").dump(), R"(["w2"])");
  EXPECT_FALSE(job.state().hosts.at("w2").drained);
}

TEST(DecideStanding, AHostWhoseAgentWasEndedAsAskedIsNoFaultOfTheNetwork) {
  Policy policy = elastic_policy();
  policy.quorum = true;
  policy.min_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(Drain{"w2", "asked for"});
  job.pass(1s);
  job.freeze();
  job.feed(Tick{});
  job.feed(exited(job.worker_on("w2")));
  job.feed(HostDown{"w2", "ended"});
  job.pass(1s);
  ASSERT_TRUE(job.state().cut_off);
  EXPECT_TRUE(warned_of(job, "were ended with their hosts: w2"));
  EXPECT_FALSE(warned_of(job, "do not answer"));
}

TEST(DecideStanding, ATakeoverNamesTheMembersThatDidNotCome) {
  Policy policy = elastic_policy();
  policy.quorum = true;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.take_all();
  const Generation number = job.state().current->number;
  const WorkerId lost = job.worker_on("w1");
  VoterSet voters{.generation = number, .voters = {}, .members = {}};
  int rank = 0;
  for (const char* host : {"w1", "w2", "w3"}) {
    voters.voters.push_back({host, "tree", {}});
    voters.members.push_back({job.worker_on(host), host, 0, {"10.0.0.1", static_cast<std::uint16_t>(5'000 + rank++)}});
  }
  TakeoverState takeover;
  takeover.election = {.term = 2, .voter_sets = {voters}, .tiebreakers = {}, .granted_by = {}};
  for (const char* host : {"w2", "w3"}) takeover.hosts.push_back(job.report_of(host));
  const Origin origin = recorded_origin(job.state());
  const auto failures = [&](const Origin& known) {
    return events(recover_state(policy, known, takeover, job.now()).actions, EventKind::failed);
  };
  const auto failed = failures(origin);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].at("host").as_string(), "w1");
  EXPECT_EQ(failed[0].at("worker").as_integer(), static_cast<std::int64_t>(lost));
  EXPECT_EQ(failed[0].at("rank").as_integer(), 0);
  Origin drained = origin;
  drained.earlier.drained["w1"] = "asked for";
  EXPECT_TRUE(failures(drained).empty());
}

}  // namespace
}  // namespace dtrain::elastic
