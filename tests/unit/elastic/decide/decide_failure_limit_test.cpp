// Policy::failure_limit: which failures end a job, and which do not.
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

Policy policy_with_limit(int failures) {
  Policy policy = elastic_policy();
  policy.failure_limit = failures;
  return policy;
}

TEST(FailureLimit, AStepForgetsTheFailuresBeforeIt) {
  Job job(policy_with_limit(2));
  job.run_on({"w1", "w2"});
  for (int i = 0; i < 4; ++i) {
    job.take_all();
    job.feed(exited(job.worker_on("w2"), 1));
    job.freeze();
    ASSERT_FALSE(job.state().ending) << i;
    job.complete_change();
    EXPECT_EQ(job.state().failures_since_step, 0);
    while (started(job.all()).empty()) job.pass(500ms);
    job.prepare_host("w2");
    job.pass(500ms);
    job.complete_change();
  }
  EXPECT_EQ(job.state().failures, 4) << "all of them are counted for reports";
}

void fail_starts_of_three(Job& job) {
  job.want({"w1", "d1", "d2", "d3"});
  for (const char* host : {"d1", "d2", "d3"}) job.feed(HostDown{host, "no route to host"});
}

TEST(FailureLimit, HostsThatCannotStartEndNoJobThatTrains) {
  Job job(policy_with_limit(2));
  job.run_on({"w1"});
  fail_starts_of_three(job);
  EXPECT_FALSE(job.state().ending);
  EXPECT_EQ(job.state().failures, 3);
}

TEST(FailureLimit, HostsThatCannotStartEndAJobThatHasNotBegun) {
  Job job(policy_with_limit(2));
  fail_starts_of_three(job);
  EXPECT_TRUE(job.state().ending);
}

TEST(FailureLimit, NewcomersThatFailEndNoJobThatTrains) {
  Job job(policy_with_limit(0));
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.host_up("w2");
  job.feed(exited(job.worker_on("w2"), 1));
  EXPECT_FALSE(job.state().ending);
}

// A host that trains with four workers beside one that trains with one. Returns the four.
std::vector<WorkerId> run_with_four_on_w2(Job& job) {
  job.feed(HostsWanted{.hosts = {host_line("w1"), host_line("w2", 4)}});
  job.prepare_host("w1");
  job.host_up("w2");
  const std::vector<WorkerId> workers = job.state().hosts.at("w2").slots;
  for (const WorkerId id : workers) {
    job.say(id, Hello{.pid = 1, .data = {"10.0.0.2", static_cast<std::uint16_t>(5'000 + id)}, .fingerprint = "same"});
    job.say(id, Ready{.position = {}, .probe = "same"});
  }
  job.complete_change();
  EXPECT_EQ(job.ranks().size(), 5u);
  return workers;
}

TEST(FailureLimit, AHostIsOneFailureHoweverManyWorkersItHad) {
  Job job(policy_with_limit(2));
  run_with_four_on_w2(job);
  job.feed(HostDown{"w2", "it burns"});
  EXPECT_FALSE(job.state().ending);
  EXPECT_EQ(job.state().failures_since_step, 1);
  EXPECT_EQ(job.state().failures, 4);
}

TEST(FailureLimit, WorkersThatHangTogetherAreOneFailureOfTheirHost) {
  Job job;
  job.silent = run_with_four_on_w2(job);
  job.pass(4s);
  EXPECT_EQ(events(job.all(), EventKind::failed).size(), 4u);
  EXPECT_EQ(job.state().failures, 4);
  EXPECT_EQ(job.state().hosts.at("w2").failures, 1);
  EXPECT_LE(job.state().hosts.at("w2").quarantined_until, job.now()) << "it trained: it is tried again at once";
}

}  // namespace
}  // namespace dtrain::elastic
