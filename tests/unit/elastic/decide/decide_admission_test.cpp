#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

Policy policy_with(AdmissionCheckFor admission_check) {
  Policy policy = elastic_policy();
  policy.admission_check = admission_check;
  return policy;
}

AdmissionChecked passed(const std::string& host) { return {host, {}}; }
AdmissionChecked failed(const std::string& host) {
  AdmissionCheckResult result;
  result.stage = AdmissionCheckResult::Stage::prepare;
  result.failure = "the prepare command ended with exit code 3";
  result.last_lines = {"no such bucket"};
  return {host, result};
}

TEST(DecideGate, ANewcomerStartsNoWorkerBeforeItPassed) {
  Job job(policy_with(AdmissionCheckFor::new_hosts));
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.host_up("w2");
  ASSERT_EQ(of_kind<RunAdmissionCheck>(job.actions()).size(), 1u);
  EXPECT_TRUE(started(job.actions()).empty());
  EXPECT_EQ(phase_of(job.state(), job.state().hosts.at("w2"), job.now()), HostPhase::preparing);
  job.feed(passed("w2"));
  EXPECT_EQ(started(job.actions()), std::vector<std::string>{"w2"});
}

TEST(DecideGate, HostsOfTheStartPassOnlyWhereThatIsAskedFor) {
  Job free(policy_with(AdmissionCheckFor::new_hosts));
  free.want({"w1"});
  free.host_up("w1");
  EXPECT_TRUE(of_kind<RunAdmissionCheck>(free.actions()).empty());
  Job all(policy_with(AdmissionCheckFor::all_hosts));
  all.want({"w1"});
  all.host_up("w1");
  EXPECT_EQ(of_kind<RunAdmissionCheck>(all.actions()).size(), 1u);
}

TEST(DecideGate, WhoFailsIsTriedAgainLaterAndNobodyElseNotices) {
  Job job(policy_with(AdmissionCheckFor::new_hosts));
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.host_up("w2");
  job.feed(failed("w2"));
  const auto told = events(job.actions(), EventKind::failed);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].at("last_lines").as_array().size(), 1u);
  const Explanation why = explain(job.state(), job.state().hosts.at("w2"), job.now());
  EXPECT_NE(why.reason.find("no such bucket"), why.reason.npos) << why.reason;
  EXPECT_NE(why.next.find("tail-logs"), why.next.npos) << why.next;
  job.take_all();
  job.pass(4s);
  EXPECT_TRUE(of_kind<RunAdmissionCheck>(job.all()).empty()) << "tried before its quarantine was over";
  job.pass(2s);
  EXPECT_EQ(of_kind<RunAdmissionCheck>(job.all()).size(), 1u);
  EXPECT_TRUE(sent<Freeze>(job.all()).empty());
  EXPECT_EQ(job.ranks(), std::vector<std::string>{"w1"});
}

TEST(DecideGate, AJobWhoseHostsAllFailEnds) {
  Job job(policy_with(AdmissionCheckFor::all_hosts));
  job.want({"w1"});
  job.host_up("w1");
  job.feed(failed("w1"));
  ASSERT_TRUE(job.state().ending);
  EXPECT_EQ(job.state().ending->exit_code, ExitCode::failed);
}

TEST(DecideGate, AHostThatIsRemovedMeanwhileStartsNothing) {
  Job job(policy_with(AdmissionCheckFor::new_hosts));
  job.run_on({"w1", "w3"});
  job.want({"w1", "w2", "w3"});
  job.host_up("w2");
  job.want({"w1", "w3"});
  EXPECT_EQ(of_kind<EndHost>(job.actions()).size(), 1u);
  job.feed(passed("w2"));
  EXPECT_TRUE(started(job.actions()).empty());
}

TEST(DecideGate, AnAgentThatNeverAnswersIsLost) {
  Job job(policy_with(AdmissionCheckFor::new_hosts));
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.host_up("w2");
  job.take_all();
  job.pass(job.state().policy.admission_timeout + 1s);
  EXPECT_EQ(events(job.all(), EventKind::host_down).size(), 1u);
}

TEST(DecideGate, WhoComputesOtherBitsOfTheSameSamplesIsRefusedUnlessTheyMayBeMixed) {
  for (const bool allowed : {false, true}) {
    Policy policy = elastic_policy();
    policy.allow_mixed_hardware = allowed;
    Job job(policy);
    job.run_on({"w1"});
    job.want({"w1", "w2"});
    job.host_up("w2");
    job.hello("w2");
    job.ready("w2", "other bits");
    EXPECT_EQ(of_kind<KillWorker>(job.actions()).empty(), allowed);
    const Explanation why = explain(job.state(), job.state().hosts.at("w2"), job.now());
    EXPECT_EQ(why.next.find("setting 'mixed-hardware'") != why.next.npos, !allowed) << why.next;
  }
}

}  // namespace
}  // namespace dtrain::elastic
