#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include <dtrain/base/error.hpp>

#include "elastic/temporary_folder.hpp"
#include "election_sim.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kOutside = ElectionSim::kElsewhere;

TEST(Elect, NobodyAsksWhileTheCoordinatorIsHeard) {
  ElectionSim sim(3);
  sim.pass(60s);
  EXPECT_EQ(sim.elected.size(), 0u);
  EXPECT_EQ(sim.followers(1).size(), 3u);
}

TEST(Elect, TheFirstMembersAgentTakesOverWithinSecondsAndAllFollow) {
  ElectionSim sim(3);
  sim.kill_coordinator(1);
  sim.pass(4s);
  EXPECT_EQ(sim.coordinators(), (std::map<Term, int>{{2, 1}}));
  EXPECT_EQ(sim.followers(2), (std::set<int>{1, 2, 3}));
}

TEST(Elect, TheNextOneDoesItWhenTheFirstMembersMachineIsLostToo) {
  ElectionSim sim(3, 1);
  sim.kill_machine(1);
  sim.pass(5s);
  EXPECT_EQ(sim.coordinators(), (std::map<Term, int>{{2, 2}}));
  EXPECT_EQ(sim.followers(2), (std::set<int>{2, 3}));
}

TEST(Elect, TheVoterBesideTheLostCoordinatorIsNotWaitedFor) {
  ElectionSim sim(3, 1);
  sim.kill_machine(1);
  sim.pass(3'200ms);
  EXPECT_EQ(sim.elected, (std::set<Term>{2}));
}

TEST(Elect, AnotherTakesOverWhereTheFirstCannotStartACoordinator) {
  ElectionSim sim(4);
  sim.unfit = {1, 2};
  sim.kill_coordinator(1);
  sim.pass(20s);
  const std::map<Term, int> coordinators = sim.coordinators();
  ASSERT_EQ(coordinators.size(), 1u);
  EXPECT_GT(coordinators.begin()->second, 2);
  EXPECT_EQ(sim.followers(coordinators.begin()->first), (std::set<int>{1, 2, 3, 4}));
}

TEST(Elect, OneThatIsCutOffDisturbsNobodyAndComesBack) {
  ElectionSim sim(3);
  sim.cut({{kOutside, 1, 2}, {3}}, {1, 2});
  sim.pass(60s);
  EXPECT_EQ(sim.agent(3).voted_term, 1u);
  sim.heal();
  sim.pass(2s);
  EXPECT_EQ(sim.elected.size(), 0u);
  EXPECT_EQ(sim.followers(1), (std::set<int>{1, 2, 3}));
}

TEST(Elect, TheMajoritySideChoosesAndTheMinorityFollowsOnceHealed) {
  ElectionSim sim(3, 1);
  sim.cut({{1}, {2, 3}}, {1, 2, 3});
  sim.pass(6s);
  EXPECT_EQ(sim.elected, (std::set<Term>{2}));
  EXPECT_EQ(sim.followers(2), (std::set<int>{2, 3}));
  sim.heal();
  sim.pass(2s);
  EXPECT_EQ(sim.followers(2), (std::set<int>{1, 2, 3}));
}

TEST(Elect, OneLeftOfTwoGoesOnAloneByItsClaim) {
  ElectionSim sim(2, 1);
  sim.kill_machine(1);
  sim.pass(6s);
  EXPECT_EQ(sim.coordinators(), (std::map<Term, int>{{2, 2}}));
}

// 3 s of silence and 0.5 s of waiting for answers to the pre-vote: the vote itself does not wait for the lost half
// again.
TEST(Elect, HalfThatHoldsTheTieBreakerWaitsForTheLostOnesOnce) {
  ElectionSim sim(4);
  for (const int lost : {3, 4}) sim.kill_machine(lost);
  sim.kill_coordinator(1);
  sim.pass(3'700ms);
  EXPECT_EQ(sim.elected.size(), 1u);
}

TEST(Elect, OfTwoHalvesOneGoesOn) {
  ElectionSim sim(4);
  sim.cut({{kOutside}, {1, 2}, {3, 4}}, {1, 2, 3, 4});
  sim.pass(30s);
  EXPECT_EQ(sim.elected.size(), 1u);
}

TEST(Elect, HalfWithoutTheFolderWaits) {
  ElectionSim sim(2);
  sim.cut({{kOutside}, {1}, {2}}, {});
  sim.pass(60s);
  EXPECT_EQ(sim.elected.size(), 0u);
}

TEST(Elect, NobodyIsElectedByLessThanHalf) {
  ElectionSim sim(5);
  sim.cut({{kOutside}, {1, 2}, {3, 4}, {5}}, {1, 2, 3, 4, 5});
  sim.pass(60s);
  EXPECT_EQ(sim.elected.size(), 0u);
}

// Generation 2 may have been committed: 3 of its 4 agents are on the other side.
TEST(Elect, AGenerationThatWasBeingPreparedMustConsentToo) {
  ElectionSim sim(5);
  sim.prepare(2, {1, 3, 4, 5}, {1, 3, 4, 5});
  sim.cut({{kOutside, 3, 4, 5}, {1, 2}}, {1, 2, 3, 4, 5});
  sim.kill_coordinator(1);
  sim.pass(6s);
  EXPECT_EQ(sim.coordinators(), (std::map<Term, int>{{2, 3}}));
}

// No coordinator commits a generation before more than half of the old voters know of it, so any other half has a
// witness.
TEST(Elect, AllOfTheOldCircleAreNotEnoughWhenMostOfThemKnowOfANewerOne) {
  ElectionSim sim(3);
  sim.prepare(2, {2, 7, 8, 9}, {2, 3});
  sim.cut({{kOutside}, {1, 2, 3}}, {1, 2, 3});
  sim.pass(30s);
  EXPECT_EQ(sim.elected.size(), 0u);
}

TEST(Elect, APromiseIsGivenOnceForATerm) {
  ElectionSim sim(3);
  sim.kill_coordinator(1);
  Election agent = sim.agent(2);
  const Time later = agent.heard + 10s;
  const auto ask = [&](Term term, bool pre_vote) {
    ElectDecision decision = elect(std::move(agent), VoteRequest{term, pre_vote}, later);
    agent = std::move(decision.state);
    return std::get<Answer>(decision.actions.back()).vote.granted;
  };
  EXPECT_TRUE(ask(2, true));
  EXPECT_TRUE(ask(2, false));
  EXPECT_FALSE(ask(2, false));
  EXPECT_FALSE(ask(1, false));
  EXPECT_TRUE(ask(3, false));
}

TEST(Elect, WhoStartedACoordinatorGivesTheAgentsTimeToConnectToIt) {
  ElectionSim sim(1);
  Election agent = sim.agent(1);
  agent.connected = false;
  const Time begin = agent.heard + 10s;
  agent.starting = begin;
  ElectDecision decision = elect(std::move(agent), CoordinatorRuns{{7, {"127.0.0.1", 5}}}, begin);
  const auto asks_at = [&](Time time) {
    decision = elect(std::move(decision.state), Tick{}, time);
    return std::ranges::any_of(decision.actions,
                               [](const auto& action) { return std::holds_alternative<StartCoordinator>(action); });
  };
  EXPECT_FALSE(asks_at(begin + 100ms));
  EXPECT_FALSE(asks_at(begin + 4s));
  EXPECT_TRUE(asks_at(begin + 6s)) << "it was lost";
}

TEST(Elect, WhoPromisedHangsUpAndObeysNoOlderCoordinator) {
  ElectionSim sim(3);
  Election agent = sim.agent(2);
  const Time later = agent.heard + 10s;
  ElectDecision decision = elect(std::move(agent), VoteRequest{5, false}, later);
  EXPECT_TRUE(
      std::ranges::any_of(decision.actions, [](const auto& action) { return std::holds_alternative<HangUp>(action); }));
  decision = elect(std::move(decision.state), Followed{{1, {}}}, later);
  EXPECT_FALSE(decision.state.connected);
}

TEST(Elect, AnAgentThatFindsNobodyForTooLongEnds) {
  ElectionSim sim(3);
  sim.cut({{kOutside}, {1}, {2}, {3}}, {});
  sim.pass(700s);
  EXPECT_EQ(sim.gave_up.size(), 3u);
}

// Coordinators and machines are lost, links are cut and healed; at the end all agents follow one coordinator.
TEST(Elect, RandomCutsNeverMakeTwoCoordinatorsOfATermAndEndWithOne) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int count = 2 + static_cast<int>(random() % 5);
    ElectionSim sim(count, static_cast<int>(random() % static_cast<unsigned>(count + 1)));
    for (int act = 0; act < 6; ++act) {
      std::vector<std::set<int>> groups(1 + random() % 3);
      std::set<int> folder;
      for (int number = 0; number <= count; ++number) {
        groups[random() % groups.size()].insert(number);
        if (random() % 4 != 0) folder.insert(number);
      }
      if (random() % 3 == 0) sim.kill_coordinator(sim.coordinators().empty() ? 1 : sim.coordinators().rbegin()->first);
      sim.cut(groups, folder);
      sim.pass(std::chrono::milliseconds(random() % 15'000));
    }
    sim.heal();
    sim.pass(40s);
    ASSERT_FALSE(sim.coordinators().empty()) << "seed " << seed;
    const Term last = sim.coordinators().rbegin()->first;
    ASSERT_EQ(sim.followers(last).size(), static_cast<std::size_t>(count)) << "seed " << seed;
  }
}

TEST(Claim, OneOfTwoGetsAGenerationAndKeepsIt) {
  const TemporaryFolder folder;
  EXPECT_TRUE(acquire_tiebreaker(folder / "", 7, "one"));
  EXPECT_FALSE(acquire_tiebreaker(folder / "", 7, "two"));
  EXPECT_TRUE(acquire_tiebreaker(folder / "", 7, "one"));
  EXPECT_TRUE(acquire_tiebreaker(folder / "", 8, "two"));
  write_file_atomic(folder / "file", "");
  EXPECT_THROW(std::ignore = acquire_tiebreaker(folder / "file", 1, "one"), Error);
}

TEST(VoterSet, TravelsAsJson) {
  VoterSet voter_set = voter_set_of(3, {1, 2});
  voter_set.members = {{.worker = 7, .host = "w1", .slot = 1, .data = {"10.0.0.1", 99}}};
  KnownVoters voters{.committed = voter_set, .prepared = voter_set_of(4, {2})};
  EXPECT_EQ(known_voters_from_json(to_json(voters)), voters);
  EXPECT_EQ(known_voters_from_json(Json::object({})), KnownVoters{});
  learn(voters, {true, voter_set_of(4, {2})});
  EXPECT_EQ(voters.prepared, std::nullopt);
  learn(voters, {true, voter_set_of(3, {2})});
  EXPECT_EQ(voters.committed->generation, 4u);
}

}  // namespace
}  // namespace dtrain::elastic
