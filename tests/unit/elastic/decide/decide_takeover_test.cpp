// Agents that outlive their coordinator: what it may do without them, and how another one continues.
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

Policy lasting_policy() {
  Policy policy = elastic_policy();
  policy.quorum = true;
  return policy;
}

template <typename T>
std::ptrdiff_t place_of(const std::vector<Action>& actions) {
  return std::ranges::find_if(actions, [](const Action& action) { return std::holds_alternative<T>(action); }) -
         actions.begin();
}

bool prepares(const std::vector<Action>& actions) { return !sent<Prepare>(actions).empty(); }

TEST(Quorum, AgentsHearOfAGenerationBeforeItsMembersDo) {
  Job job(lasting_policy());
  job.want({"w1"});
  job.host_up("w1");
  job.hello("w1");
  job.ready("w1");
  ASSERT_TRUE(prepares(job.actions()));
  EXPECT_LT(place_of<AnnounceVoters>(job.actions()), place_of<Send>(job.actions()));
}

TEST(Quorum, AGenerationIsCommittedOnceMostAgentsOfTheLastOneKnowOfIt) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1", "w2", "w3", "w4"});
  job.prepare_host("w4");
  job.pass(1s);
  job.deaf = {"w1", "w2"};
  job.mesh();
  EXPECT_TRUE(job.state().change && !job.state().change->committed);
  job.feed(HostKnows{"w2", job.state().change->number});
  EXPECT_TRUE(job.state().change->committed);
}

TEST(Quorum, WithoutHalfOfTheAgentsTheJobHoldsUntilTheyAreBack) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.feed(HostDown{"w2", "gone"});
  job.feed(HostDown{"w3", "gone"});
  job.freeze();
  job.pass(2s);
  EXPECT_FALSE(job.state().change) << "it may go on where the others are";
  EXPECT_TRUE(job.state().cut_off);
  job.host_up("w2");
  EXPECT_TRUE(job.state().change);
  EXPECT_FALSE(job.state().cut_off);
}

TEST(Quorum, ExactlyHalfGoesOnOnceItHasTheClaim) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  const Generation next = job.state().current->number + 1;
  job.feed(HostDown{"w2", "gone"});
  job.freeze();
  job.feed(Tick{});
  EXPECT_FALSE(job.state().change);
  job.feed(TiebreakerAnswered{next, true});
  ASSERT_TRUE(job.state().change);
  job.mesh();
  job.enter();
  EXPECT_EQ(job.ranks(), std::vector<std::string>{"w1"});
}

TEST(Quorum, HalfAsksForTheClaimAndWaitsWhenTheOtherHalfHasIt) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  const Generation next = job.state().current->number + 1;
  job.feed(HostDown{"w2", "gone"});
  job.freeze();
  job.feed(Tick{});
  const auto asked = of_kind<AcquireTiebreaker>(job.all());
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.front().generation, next);
  job.feed(TiebreakerAnswered{next, false});
  job.pass(5s);
  EXPECT_FALSE(job.state().change);
}

// Two of four hosts fall silent together: their workers are judged first, so a change begins while their agents still
// count, and the quorum is lost when it is under way.
void lose_two_while_the_change_is_prepared(Job& job) {
  job.run_on({"w1", "w2", "w3", "w4"});
  job.silent = {job.worker_on("w1"), job.worker_on("w2")};
  job.deaf = {"w1", "w2"};
  job.pass(3100ms);
  job.freeze();
  ASSERT_TRUE(job.state().change);
  job.mesh();
  ASSERT_FALSE(job.state().change->committed);
  job.take_all();
  for (const char* host : {"w1", "w2"}) job.feed(HostDown{host, "nothing was heard of its agent for 3.0 s"});
}

TEST(Quorum, AChangeUnderWayTakesTheTieBreakerWhenOnlyHalfIsLeft) {
  Job job(lasting_policy());
  lose_two_while_the_change_is_prepared(job);
  const auto asked = of_kind<AcquireTiebreaker>(job.all());
  ASSERT_EQ(asked.size(), 1u);
  job.feed(TiebreakerAnswered{asked.front().generation, true});
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w3", "w4"}));
  job.enter();
  job.train();
  EXPECT_TRUE(job.state().current->stepped);
}

// A coordinator that is cut off loses its agents one after the other, and has half of them for a moment.
TEST(Quorum, AChangeUnderWayTakesTheTieBreakerOnlyForAgentsThatHaveAnsweredSince) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3", "w4"});
  job.silent = {job.worker_on("w1"), job.worker_on("w2")};
  job.deaf = {"w1", "w2", "w3", "w4"};
  job.pass(3100ms);
  job.freeze();
  ASSERT_TRUE(job.state().change);
  const Generation number = job.state().change->number;
  job.take_all();
  for (const char* host : {"w1", "w2"}) job.feed(HostDown{host, "nothing was heard of its agent for 3.0 s"});
  EXPECT_TRUE(of_kind<AcquireTiebreaker>(job.all()).empty());
  for (const char* host : {"w3", "w4"}) job.feed(HostKnows{host, number});
  EXPECT_EQ(of_kind<AcquireTiebreaker>(job.all()).size(), 1u);
}

TEST(Quorum, TheTieBreakerNamesTheLostHosts) {
  Job job(lasting_policy());
  lose_two_while_the_change_is_prepared(job);
  job.feed(TiebreakerAnswered{of_kind<AcquireTiebreaker>(job.all()).at(0).generation, true});
  const auto says = [](const Say& say) { return say.text.find("w1, w2") != say.text.npos; };
  EXPECT_TRUE(std::ranges::any_of(of_kind<Say>(job.all()), says));
}

TEST(Quorum, AChangeThatLosesItsQuorumIsAbandonedWithTheLostHosts) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w1"), 0, 9));
  job.freeze();
  ASSERT_TRUE(job.state().change);
  job.deaf = {"w1", "w2"};
  job.take_all();
  for (const char* host : {"w1", "w2"}) job.feed(HostDown{host, "gone"});
  job.pass(20s);
  const auto abandoned = events(job.all(), EventKind::abandoned);
  ASSERT_FALSE(abandoned.empty());
  EXPECT_TRUE(job.state().cut_off);
  const auto cut = of_kind<Say>(job.all());
  EXPECT_TRUE(std::ranges::any_of(cut, [](const Say& say) { return say.text.find("w1, w2") != say.text.npos; }));
}

TEST(Quorum, AnAgentThatConnectsAgainDuringAChangeHearsOfIt) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1", "w2", "w3", "w4"});
  job.prepare_host("w4");
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  const Generation number = job.state().change->number;
  job.feed(HostUp{"w4", "10.0.0.1"});
  EXPECT_TRUE(of_kind<AnnounceVoters>(job.actions()).empty()) << "it is connected already";
  job.want({"w1", "w2", "w3", "w4", "w5"});
  job.host_up("w5");
  const auto told = of_kind<AnnounceVoters>(job.actions());
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].generation, number);
  EXPECT_FALSE(told[0].committed);
}

TEST(Quorum, AMinoritySavesNothing) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.feed(HostDown{"w2", "gone"});
  job.feed(HostDown{"w3", "gone"});
  job.freeze();
  job.pass(1s);
  const auto stops = sent<Stop>(job.feed(StopAsked{.reason = "by a person"}));
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_FALSE(stops[0].second.save);
}

TEST(Quorum, AMinorityThatIsNeverReachedEndsWithoutACheckpoint) {
  Policy policy = lasting_policy();
  policy.hold_timeout = 20s;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.feed(HostDown{"w2", "gone"});
  job.feed(HostDown{"w3", "gone"});
  job.freeze();
  job.pass(30s);
  EXPECT_TRUE(sent<Stop>(job.all()).empty());
  EXPECT_TRUE(job.state().ending);
}

TEST(Quorum, RecordsAreWrittenWhileMostAgentsAnswer) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  const auto with = [&](std::size_t answered) {
    return leads(job.state(), [answered](const auto&) { return answered; });
  };
  EXPECT_FALSE(with(1));
  EXPECT_TRUE(with(2));
}

TEST(Inherit, AllWorkersGoOnInANewGenerationAndNoneIsStarted) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  const Generation before = job.state().current->number;
  const auto actions = job.take_over({"w1", "w2", "w3"});
  EXPECT_EQ(receivers<Freeze>(actions).size(), 3u);
  job.want({"w1", "w2", "w3"});
  EXPECT_TRUE(started(job.actions()).empty());
  EXPECT_TRUE(of_kind<StartHost>(job.actions()).empty());
  job.freeze();
  ASSERT_TRUE(job.state().change);
  EXPECT_GT(job.state().change->number, before);
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w1", "w2", "w3"}));
}

TEST(Inherit, WhoDidNotComeIsReplacedAndTheRestGoOn) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.take_over({"w2", "w3"});
  job.want({"w1", "w2", "w3"});
  EXPECT_EQ(of_kind<StartHost>(job.actions()).size(), 1u);
  job.freeze();
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w2", "w3"}));
}

// The agents have heard nothing of it for the whole of the election; one more silence would only make the pause longer.
TEST(Inherit, AWorkerThatHungBeforeTheTakeoverIsEvictedWithoutASecondSilence) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.silent = {job.worker_on("w2")};
  job.pass(2900ms);
  job.take_over({"w1", "w2", "w3"});
  job.want({"w1", "w2", "w3"});
  job.pass(600ms);
  job.freeze();
  ASSERT_TRUE(job.state().change);
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w1", "w3"}));
}

TEST(Inherit, AWorkerWhoseMessagesWaitInItsAgentIsHeardBeforeItIsJudged) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.silent = {job.worker_on("w2")};
  job.pass(2900ms);
  job.take_over({"w1", "w2", "w3"});
  job.want({"w1", "w2", "w3"});
  job.silent.clear();
  job.pass(600ms);
  job.freeze();
  ASSERT_TRUE(job.state().change);
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w1", "w2", "w3"}));
}

TEST(Inherit, WithoutEnoughAgentsItWaits) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.take_over({"w3"});
  job.want({"w1", "w2", "w3"});
  job.freeze();
  job.pass(1s);
  EXPECT_FALSE(job.state().change);
}

TEST(Inherit, WithoutAnyAgentItHoldsInsteadOfTakingTheJobForOneThatNeverTrained) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  job.train();
  job.take_over({"w1", "w2"});
  job.want({"w1", "w2"});
  for (const std::string host : {"w1", "w2"}) job.feed(HostDown{host, "it follows another coordinator"});
  job.pass(1s);
  EXPECT_FALSE(job.state().ending);
}

TEST(Inherit, AChangeThatWasHalfWayIsSettled) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  job.pass(1s);
  ASSERT_TRUE(job.state().change);
  const Generation prepared = job.state().change->number;
  const auto freezes = sent<Freeze>(job.take_over({"w1", "w2", "w3"}));
  ASSERT_EQ(freezes.size(), 3u);
  EXPECT_EQ(freezes[0].second.generation, prepared);
  EXPECT_EQ(job.state().voter_sets.size(), 2u) << "it may have been committed";
  job.want({"w1", "w2", "w3"});
  job.freeze();
  job.complete_change();
  EXPECT_EQ(job.ranks().size(), 3u);
}

TEST(Inherit, ANewcomerGoesOnPreparing) {
  Job job(lasting_policy());
  job.run_on({"w1"});
  job.want({"w1", "w2"});
  job.host_up("w2");
  job.hello("w2");
  const WorkerId newcomer = job.worker_on("w2");
  job.take_over({"w1", "w2"});
  job.want({"w1", "w2"});
  job.freeze();
  job.complete_change();
  job.ready("w2");
  job.pass(1s);
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w1", "w2"}));
  EXPECT_EQ(job.worker_on("w2"), newcomer);
}

TEST(Inherit, TrainingThatEndedMeanwhileIsComplete) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  job.take_over({"w1", "w2"});
  job.want({"w1", "w2"});
  for (const std::string host : {"w1", "w2"}) job.say(job.worker_on(host), left(Left::How::done));
  for (const std::string host : {"w1", "w2"}) job.feed(exited(job.worker_on(host)));
  for (const std::string host : {"w1", "w2"}) job.feed(HostDown{host, "ended"});
  const auto finish = of_kind<Finish>(job.all());
  ASSERT_EQ(finish.size(), 1u);
  EXPECT_EQ(finish[0].exit_code, ExitCode::ok);
}

TEST(Inherit, AListThatWasRefusedAsAnAccidentStaysRefused) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1"});
  job.take_over({"w1", "w2", "w3"});
  job.take_all();
  job.want({"w1"});
  EXPECT_EQ(events(job.all(), EventKind::hosts_refused).size(), 1u);
  EXPECT_EQ(job.state().order, (std::vector<std::string>{"w1", "w2", "w3"}));
  job.freeze();
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w1", "w2", "w3"}));
}

TEST(Inherit, WithoutAHostListTheHostsOfMembersAndAgentsStay) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.take_over({"w2", "w3"});
  job.feed(Tick{});
  const auto restarted = of_kind<StartHost>(job.actions());
  ASSERT_EQ(restarted.size(), 1u) << "the agent of a member did not come";
  EXPECT_EQ(restarted[0].host, host_line("w1"));
  job.freeze();
  job.complete_change();
  EXPECT_EQ(job.ranks(), (std::vector<std::string>{"w2", "w3"}));
}

TEST(Inherit, AHostThatWasRemovedBeforeTheTakeoverLeavesHoweverManyThereAre) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2", "w3"});
  job.want({"w1"}, true);
  job.take_over({"w1", "w2", "w3"}, recorded_origin(job.state()));
  EXPECT_EQ(job.state().order, std::vector<std::string>{"w1"});
  job.freeze();
  job.complete_change();
  EXPECT_EQ(job.ranks(), std::vector<std::string>{"w1"});
}

TEST(Inherit, AListedHostThatHadNoAgentYetIsStarted) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  Origin origin = recorded_origin(job.state());
  origin.earlier.listed.emplace_back("ada@w3:2222");
  job.take_over({"w1", "w2"}, origin);
  job.feed(Tick{});
  const auto started_hosts = of_kind<StartHost>(job.actions());
  ASSERT_EQ(started_hosts.size(), 1u);
  EXPECT_EQ(started_hosts[0].host,
            (HostLine{.name = "ada@w3:2222", .user = "ada", .host = "w3", .port = 2222, .slots = 1}));
}

TEST(Inherit, TheListThatTheFileHasIsNoEditAndGivesTheOrder) {
  Job job(lasting_policy());
  job.run_on({"w1", "w2"});
  job.take_over({"w1", "w2"});
  job.take_all();
  job.want({"w2", "w1"});
  EXPECT_TRUE(events(job.all(), EventKind::hosts).empty());
  EXPECT_EQ(job.state().order, (std::vector<std::string>{"w2", "w1"}));
}

}  // namespace
}  // namespace dtrain::elastic
