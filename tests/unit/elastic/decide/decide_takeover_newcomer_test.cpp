// What a coordinator that takes over knows of hosts and workers that have not trained yet.
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

Policy policy_with_quorum() {
  Policy policy = elastic_policy();
  policy.quorum = true;
  return policy;
}

Policy checking_policy() {
  Policy policy = policy_with_quorum();
  policy.admission_check = AdmissionCheckFor::new_hosts;
  return policy;
}

TEST(TakeoverNewcomer, AHostInPreparationIsCheckedAgain) {
  Job job(checking_policy());
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.host_up("w2");
  ASSERT_EQ(of_kind<RunAdmissionCheck>(job.actions()).size(), 1u);
  job.take_over({"w1", "w2"}, recorded_origin(job.state()));
  job.take_all();
  job.feed(Tick{});
  EXPECT_EQ(of_kind<RunAdmissionCheck>(job.all()).size(), 1u);
  EXPECT_TRUE(started(job.all()).empty());
}

TEST(TakeoverNewcomer, AListedHostThatHadNoAgentYetIsCheckedToo) {
  Job job(checking_policy());
  job.run_on({"w1"});
  Origin origin = recorded_origin(job.state());
  origin.earlier.listed.emplace_back("w2");
  job.take_over({"w1"}, origin);
  job.feed(Tick{});
  job.take_all();
  job.host_up("w2");
  EXPECT_EQ(of_kind<RunAdmissionCheck>(job.all()).size(), 1u);
  EXPECT_TRUE(started(job.all()).empty());
}

TEST(TakeoverNewcomer, AHostThatTrainedIsNotChecked) {
  Job job(checking_policy());
  job.run_on({"w1", "w2"});
  job.take_over({"w1"}, recorded_origin(job.state()));
  job.feed(Tick{});
  job.take_all();
  job.host_up("w2");
  EXPECT_TRUE(of_kind<RunAdmissionCheck>(job.all()).empty());
  EXPECT_EQ(started(job.all()), std::vector<std::string>{"w2"});
}

// Their state is there, but no step of theirs was seen.
TEST(TakeoverNewcomer, HostsWhoseFirstStepComesAfterItAreLogged) {
  Job job(policy_with_quorum());
  job.want({"w1", "w2"});
  for (const char* host : {"w1", "w2"}) job.prepare_host(host);
  job.mesh();
  job.enter();
  for (const char* host : {"w1", "w2"}) job.beat(job.worker_on(host));
  job.take_over({"w1", "w2"}, recorded_origin(job.state()));
  EXPECT_FALSE(job.worker("w1").stepped);
  job.freeze();
  job.take_all();
  job.complete_change();
  EXPECT_EQ(logged(job.all()), "+w1 +w2");
  job.take_all();
  job.train();
  EXPECT_EQ(logged(job.all()), "") << "once";
  job.want({"w1"}, true);
  job.pass(1s);
  job.complete_change();
  EXPECT_EQ(logged(job.all()), "-w2");
}

TEST(TakeoverNewcomer, WhoComputesOtherBitsThanTheMembersIsRefused) {
  Job job(policy_with_quorum());
  job.run_on({"w1"});
  job.take_over({"w1"}, recorded_origin(job.state()));
  EXPECT_EQ(job.state().probe, "same");
  job.freeze();
  job.complete_change();
  job.want({"w1", "w2"});
  job.host_up("w2");
  job.hello("w2");
  job.ready("w2", "other");
  EXPECT_EQ(events(job.actions(), EventKind::failed).size(), 1u);
  EXPECT_NE(job.state().hosts.at("w2").last_failure.find("other bits"), std::string::npos);
}

// Its message is among what its agent reports; "a" comes before the member in every order by name.
TEST(TakeoverNewcomer, WhoCameWithoutACoordinatorIsComparedWithTheMembers) {
  Job job(policy_with_quorum());
  job.run_on({"w1"});
  job.want({"w1", "a"});
  job.host_up("a");
  job.hello("a");
  const WorkerId stranger = job.worker_on("a");
  TakeoverState takeover;
  takeover.election = {.term = 2, .voter_sets = job.voter_sets(), .tiebreakers = {}, .granted_by = {}};
  takeover.hosts = {job.report_of("a"), job.report_of("w1")};
  takeover.hosts[0].workers.at(0).said.emplace_back(Ready{.position = {}, .probe = "other"});
  const Decision decision = recover_state(policy_with_quorum(), recorded_origin(job.state()), takeover, job.now());
  EXPECT_EQ(decision.state.probe, "same");
  const auto kills = of_kind<KillWorker>(decision.actions);
  ASSERT_EQ(kills.size(), 1u);
  EXPECT_EQ(kills[0].worker, stranger);
}

// No worker has a position: the one that trained has ended, and the next one still prepares.
TEST(TakeoverNewcomer, ItsFailureDoesNotEndAJobThatTrainedBefore) {
  Job job(policy_with_quorum());
  job.run_on({"w1"});
  job.feed(exited(job.worker_on("w1"), 1));
  job.hello("w1");
  job.take_over({"w1"}, recorded_origin(job.state()));
  job.feed(exited(job.worker_on("w1"), 1));
  job.pass(1s);
  EXPECT_FALSE(job.state().ending);
}

// An earlier job in the same folder has trained.
TEST(TakeoverNewcomer, ItsFailureEndsAJobThatHasNotTrainedSinceItWasBegunAgain) {
  Job job(policy_with_quorum(), {.logged = {"w1"}});
  job.want({"w1"});
  job.host_up("w1");
  job.hello("w1");
  const Origin origin = recorded_origin(job.state());
  ASSERT_EQ(origin.logged, std::vector<std::string>{"w1"});
  job.take_over({"w1"}, origin);
  job.feed(exited(job.worker_on("w1"), 1));
  EXPECT_TRUE(job.state().ending);
}

TEST(TakeoverNewcomer, ItsFailureEndsAJobThatNeverTrained) {
  Job job(policy_with_quorum());
  job.want({"w1"});
  job.host_up("w1");
  job.hello("w1");
  job.take_over({"w1"}, recorded_origin(job.state()));
  job.feed(exited(job.worker_on("w1"), 1));
  EXPECT_TRUE(job.state().ending);
}

}  // namespace
}  // namespace dtrain::elastic
