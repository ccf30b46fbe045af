#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

TEST(DecideNotice, AHostThatGoesSoonLeavesAtTheNextStep) {
  Policy policy = elastic_policy();
  policy.boundary = Boundary::epoch;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(HostNotice{.host = "w2", .reason = "spot notice"});
  job.pass(1s);
  job.mesh();
  EXPECT_EQ(sent<Commit>(job.actions())[0].second.boundary, Boundary::step);
  job.enter();
  job.train();
  EXPECT_EQ(job.ranks(), std::vector<std::string>{"w1"});
  EXPECT_EQ(logged(job.all()), "-w2");
}

TEST(DecideNotice, MayBeRepeated) {
  Job job;
  job.run_on({"w1", "w2"});
  for (int times = 0; times < 2; ++times) job.feed(HostNotice{.host = "w2", .reason = "spot notice"});
  EXPECT_EQ(events(job.all(), EventKind::notice).size(), 1u);
  EXPECT_EQ(events(job.all(), EventKind::drain).size(), 1u);
}

TEST(DecideNotice, CountsAgainForAHostThatWasNoticedWhileItLeftAndIsBack) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1"});
  job.feed(HostNotice{.host = "w2", .reason = "spot notice"});
  job.want({"w1", "w2"});
  EXPECT_FALSE(job.state().hosts.at("w2").drained);
  job.feed(HostNotice{.host = "w2", .reason = "spot notice"});
  EXPECT_TRUE(job.state().hosts.at("w2").drained);
  EXPECT_EQ(events(job.all(), EventKind::drain).size(), 1u);
}

TEST(DecideNotice, ARecommendationIsOnlyAnEvent) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(HostNotice{.host = "w2", .leave = false, .reason = "rebalance recommended"});
  job.pass(1s);
  EXPECT_EQ(events(job.all(), EventKind::notice).size(), 1u);
  EXPECT_FALSE(job.state().change);
}

TEST(DecideNotice, WhereTooFewWouldBeLeftTheJobSavesAndEndsAtOnce) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.say(job.worker_on("w2"), AskLeave{"signal 15"});
  job.pass(1s);
  EXPECT_EQ(receivers<Stop>(job.all()).size(), 2u);
  ASSERT_TRUE(job.state().ending);
  EXPECT_EQ(job.state().ending->exit_code, ExitCode::resumable);
}

// The newcomer would have joined at the end of the epoch.
TEST(DecideNotice, AReadyNewcomerTakesOverAtTheNextStepWhereTooFewWouldBeLeft) {
  Policy policy = elastic_policy();
  policy.boundary = Boundary::epoch;
  Job job(policy);
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.prepare_host("w2");
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  job.feed(HostNotice{.host = "w1", .reason = "spot notice"});
  job.mesh();
  job.pass(1s);
  EXPECT_FALSE(job.state().ending);
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->boundary, Boundary::step);
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w1", "w2"})) << "w1 hands its state over";
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  job.complete_change();
  EXPECT_EQ(job.ranks(), std::vector<std::string>{"w2"});
}

TEST(DecideNotice, ANewcomerWaitsForItsBoundaryWhereEnoughAreLeft) {
  Policy policy = elastic_policy();
  policy.boundary = Boundary::epoch;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.pass(1s);
  job.feed(HostNotice{.host = "w1", .reason = "spot notice"});
  job.mesh();
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->members, std::vector<WorkerId>{job.worker_on("w2")});
}

TEST(DecideNotice, AJobThatHoldsSavesWhenItsLastHostMustGo) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.freeze();
  ASSERT_TRUE(job.state().freezing && job.state().freezing->holding_since);
  job.take_all();
  job.feed(HostNotice{.host = "w1", .reason = "spot notice"});
  job.pass(1s);
  const auto stops = sent<Stop>(job.all());
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_TRUE(stops[0].second.save);
}

}  // namespace
}  // namespace dtrain::elastic
