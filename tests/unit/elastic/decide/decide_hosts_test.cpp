#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

std::vector<Say> warnings(const std::vector<Action>& actions) {
  std::vector<Say> found = of_kind<Say>(actions);
  std::erase_if(found, [](const Say& say) { return say.kind != Say::Kind::warning; });
  return found;
}

TEST(DecideHosts, AnEditThatRemovesMoreThanHalfIsRefusedAndSaysHow) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1"});
  job.pass(5s);
  EXPECT_FALSE(job.state().change);
  ASSERT_EQ(warnings(job.all()).size(), 1u);
  EXPECT_NE(warnings(job.all())[0].hint.find("setting 'allow-mass-remove'"), std::string::npos);
  EXPECT_EQ(job.state().order, (Names{"w1", "w2", "w3"}));
}

TEST(DecideHosts, AMachineThatStandsUnderTwoNamesIsNamedOnce) {
  Job job;
  job.want({"w1", "w2", "w3", "w4"});
  job.host_up("w1");
  job.feed(HostUp{"w2", "127.0.0.1"});
  job.feed(HostUp{"w3", "127.0.0.1"});
  EXPECT_TRUE(warnings(job.all()).empty());
  const std::string address = job.state().hosts.at("w1").address;
  job.feed(HostUp{"w4", address});
  job.feed(HostDown{"w4", "closed"});
  job.feed(HostUp{"w4", address});
  const auto is_of_machine = [&](const Say& say) { return say.text.starts_with("w1 and w4 have one address"); };
  const std::vector<Say> said = warnings(job.all());
  EXPECT_EQ(std::ranges::count_if(said, is_of_machine), 1);
}

TEST(DecideHosts, ExactlyHalfMayGoAndAPersonMayRemoveAnyNumber) {
  Job job;
  job.run_on({"w1", "w2", "w3", "w4"});
  job.want({"w1", "w2"});
  EXPECT_EQ(job.state().order.size(), 2u);
  job.want({}, true);
  EXPECT_TRUE(job.state().order.empty());
}

TEST(DecideHosts, TheOptionAllowsMassRemovalByHand) {
  Policy policy = elastic_policy();
  policy.allow_mass_remove = true;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1"});
  EXPECT_EQ(job.state().order, Names{"w1"});
}

TEST(DecideHosts, ADoubtfulListAddsButRemovesNobody) {
  Job job;
  job.run_on({"w1", "w2"});
  job.feed(HostsWanted{.hosts = {host_line("w1"), host_line("w3")}, .doubtful = {"w?2"}});
  EXPECT_EQ(job.state().order, (Names{"w1", "w3", "w2"}));
  job.feed(HostsWanted{.hosts = {host_line("w1"), host_line("w3")}});
  EXPECT_EQ(job.state().order, (Names{"w1", "w3"}));
}

TEST(DecideHosts, ACommandRemovesWhomItNamesAndNoHostWhoseLineIsMistyped) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(HostsWanted{.hosts = {host_line("w1")}, .by_person = true, .doubtful = {"w2 slot=2"}});
  EXPECT_EQ(job.state().order, (Names{"w1", "w2"}));
}

TEST(DecideHosts, TheSameListInAnotherOrderWithMoreCommentsIsNoEdit) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w2", "w1"});
  EXPECT_EQ(job.state().edits, 1u);
  EXPECT_TRUE(job.actions().empty());
}

TEST(DecideHosts, AFixedJobKeepsItsHostsAndSaysSo) {
  Job job{Policy{}};
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  EXPECT_EQ(job.state().order, (Names{"w1", "w2"}));
  EXPECT_EQ(warnings(job.actions()).size(), 1u);
}

TEST(DecideHosts, AFixedJobStopsResumablyWhenAWorkerMustLeave) {
  Job job{Policy{}};
  job.run_on({"w1", "w2"});
  job.say(job.worker_on("w2"), AskLeave{"signal 15"});
  EXPECT_EQ(receivers<Stop>(job.actions()).size(), 2u);
  EXPECT_EQ(job.state().ending->exit_code, ExitCode::resumable);
}

TEST(DecideHosts, AboveTheMaximumAHostIsASpareAndTheOptionIsNamed) {
  Policy policy = elastic_policy();
  policy.max_workers = 2;
  Job job(policy);
  job.want({"w1", "w2", "w3"});
  job.pass(1s);
  EXPECT_EQ(of_kind<StartHost>(job.all()).size(), 2u);
  EXPECT_EQ(phase_of(job.state(), job.state().hosts.at("w3"), job.now()), HostPhase::spare);
  ASSERT_EQ(events(job.all(), EventKind::spare).size(), 1u);
  const std::string next = explain(job.state(), job.state().hosts.at("w3"), job.now()).next;
  EXPECT_NE(next.find("setting 'max-workers'"), std::string::npos) << next;
  EXPECT_NE(next.find("logical shards"), std::string::npos) << "a larger one may be refused: " << next;
}

TEST(DecideHosts, ASpareTakesThePlaceOfAHostInQuarantineAndKeepsIt) {
  Policy policy = elastic_policy();
  policy.max_workers = 2;
  Job job(policy);
  job.want({"w1", "w2", "w3"});
  for (const char* host : {"w1", "w2"}) job.prepare_host(host);
  job.complete_change();
  job.feed(exited(job.worker_on("w1"), 1));
  job.feed(exited(job.worker_on("w1"), 1));
  EXPECT_EQ(of_kind<StartHost>(job.actions()).at(0).host.name, "w3");
  job.freeze();
  job.complete_change();
  job.prepare_host("w3");
  job.pass(1s);
  job.complete_change();
  job.pass(60s);
  EXPECT_EQ(job.ranks(), (Names{"w2", "w3"}));
  EXPECT_EQ(phase_of(job.state(), job.state().hosts.at("w1"), job.now()), HostPhase::spare);
}

TEST(DecideHosts, MembersAreNeverPushedOutByHostsThatStandBeforeThem) {
  Policy policy = elastic_policy();
  policy.max_workers = 2;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.want({"w0", "w1", "w2"});
  job.pass(1s);
  EXPECT_TRUE(of_kind<StartHost>(job.all()).empty());
  EXPECT_EQ(job.ranks(), (Names{"w1", "w2"}));
}

TEST(DecideHosts, FewerSlotsLetTheLastProcessesGo) {
  Job job;
  job.feed(HostsWanted{.hosts = {host_line("w1", 2)}});
  job.host_up("w1");
  const std::vector<WorkerId> slots = job.state().hosts.at("w1").slots;
  for (const WorkerId id : slots)
    job.say(id, Hello{.pid = 1, .data = comm::PeerAddress{"10.0.0.1", 1}, .fingerprint = "same"});
  for (const WorkerId id : slots) job.say(id, Ready{});
  job.complete_change();
  job.feed(HostsWanted{.hosts = {host_line("w1", 1)}});
  job.pass(1s);
  job.complete_change();
  EXPECT_EQ(job.state().current->members, std::vector<WorkerId>{slots[0]});
  EXPECT_EQ(logged(job.all()), "+w1") << "the host is still there";
}

TEST(DecideHosts, AHostThatIsRemovedWhileItStartsIsLeftAlone) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.want({"w1"});
  ASSERT_EQ(of_kind<EndHost>(job.actions()).size(), 1u);
  job.feed(HostDown{"w2", "closed"});
  EXPECT_EQ(job.state().hosts.count("w2"), 0u);
  EXPECT_EQ(logged(job.all()), "");
}

TEST(DecideHosts, AHostWhoseKeyChangedHasTheCommandThatForgetsTheOldOne) {
  Job job;
  job.run_on({"w1"});
  job.want({"w1", "c"});
  const auto forget_key = [&] { return explain(job.state(), job.state().hosts.at("c"), job.now()).forget_key; };
  job.feed(HostDown{.host = "c", .reason = "another key", .forget_key = "ssh-keygen -R c"});
  EXPECT_EQ(forget_key(), "ssh-keygen -R c");
  job.pass(10min);
  job.feed(HostDown{.host = "c", .reason = "no route"});
  EXPECT_EQ(forget_key(), "") << "its newest failure is another one";
}

TEST(DecideHosts, EveryHostThatIsNoMemberHasAReason) {
  Job job;
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "a", "b", "c"});
  job.host_up("b");
  job.hello("b");
  job.feed(HostDown{"c", "no route"});
  const auto reason = [&](const char* host) {
    return explain(job.state(), job.state().hosts.at(host), job.now()).reason;
  };
  EXPECT_EQ(reason("w1"), "");
  EXPECT_NE(reason("a").find("being started"), std::string::npos);
  EXPECT_NE(reason("b").find("builds its model, since 0 s"), std::string::npos);
  EXPECT_EQ(reason("c"), "failed (no route), tried again in 5 s");
}

TEST(DecideHosts, LinesForPeopleAreThoseOfThePredecessor) {
  Job job;
  job.want({"w1"});
  ASSERT_EQ(of_kind<Say>(job.actions()).size(), 1u);
  EXPECT_EQ(of_kind<Say>(job.actions())[0].text, "Launching worker node at ip: w1");
  job.prepare_host("w1");
  job.complete_change();
  job.want({"w1", "w2"});
  EXPECT_EQ(of_kind<Say>(job.actions())[0].text, "Launching new worker: w2");
}

}  // namespace
}  // namespace dtrain::elastic
