#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <dtrain/base/error.hpp>

#include "elastic/temporary_folder.hpp"
#include "village.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kOutside = Village::kElsewhere;

TEST(Elect, NobodyAsksWhileTheCoordinatorIsHeard) {
  Village village(3);
  village.pass(60s);
  EXPECT_EQ(village.elected.size(), 0u);
  EXPECT_EQ(village.followers(1).size(), 3u);
}

TEST(Elect, TheFirstMembersAgentTakesOverWithinSecondsAndAllFollow) {
  Village village(3);
  village.kill_coordinator(1);
  village.pass(4s);
  EXPECT_EQ(village.coordinators(), (std::map<Term, int>{{2, 1}}));
  EXPECT_EQ(village.followers(2), (std::set<int>{1, 2, 3}));
}

TEST(Elect, TheNextOneDoesItWhenTheFirstMembersMachineIsLostToo) {
  Village village(3, 1);
  village.kill_machine(1);
  village.pass(5s);
  EXPECT_EQ(village.coordinators(), (std::map<Term, int>{{2, 2}}));
  EXPECT_EQ(village.followers(2), (std::set<int>{2, 3}));
}

TEST(Elect, OneThatIsCutOffDisturbsNobodyAndComesBack) {
  Village village(3);
  village.cut({{kOutside, 1, 2}, {3}}, {1, 2});
  village.pass(60s);
  EXPECT_EQ(village.agent(3).promised, 1u);
  village.heal();
  village.pass(2s);
  EXPECT_EQ(village.elected.size(), 0u);
  EXPECT_EQ(village.followers(1), (std::set<int>{1, 2, 3}));
}

TEST(Elect, TheMajoritySideChoosesAndTheMinorityFollowsOnceHealed) {
  Village village(3, 1);
  village.cut({{1}, {2, 3}}, {1, 2, 3});
  village.pass(6s);
  EXPECT_EQ(village.elected, (std::set<Term>{2}));
  EXPECT_EQ(village.followers(2), (std::set<int>{2, 3}));
  village.heal();
  village.pass(2s);
  EXPECT_EQ(village.followers(2), (std::set<int>{1, 2, 3}));
}

TEST(Elect, OneLeftOfTwoGoesOnAloneByItsClaim) {
  Village village(2, 1);
  village.kill_machine(1);
  village.pass(6s);
  EXPECT_EQ(village.coordinators(), (std::map<Term, int>{{2, 2}}));
}

TEST(Elect, OfTwoHalvesOneGoesOn) {
  Village village(4);
  village.cut({{kOutside}, {1, 2}, {3, 4}}, {1, 2, 3, 4});
  village.pass(30s);
  EXPECT_EQ(village.elected.size(), 1u);
}

TEST(Elect, HalfWithoutTheFolderWaits) {
  Village village(2);
  village.cut({{kOutside}, {1}, {2}}, {});
  village.pass(60s);
  EXPECT_EQ(village.elected.size(), 0u);
}

TEST(Elect, NobodyIsElectedByLessThanHalf) {
  Village village(5);
  village.cut({{kOutside}, {1, 2}, {3, 4}, {5}}, {1, 2, 3, 4, 5});
  village.pass(60s);
  EXPECT_EQ(village.elected.size(), 0u);
}

// Generation 2 may have been committed: 3 of its 4 agents are on the other side.
TEST(Elect, AGenerationThatWasBeingPreparedMustConsentToo) {
  Village village(5);
  village.prepare(2, {1, 3, 4, 5}, {1, 3, 4, 5});
  village.cut({{kOutside, 3, 4, 5}, {1, 2}}, {1, 2, 3, 4, 5});
  village.kill_coordinator(1);
  village.pass(6s);
  EXPECT_EQ(village.coordinators(), (std::map<Term, int>{{2, 3}}));
}

// No coordinator commits a generation before more than half of the old circle know of it: so any other half has a
// witness.
TEST(Elect, AllOfTheOldCircleAreNotEnoughWhenMostOfThemKnowOfANewerOne) {
  Village village(3);
  village.prepare(2, {2, 7, 8, 9}, {2, 3});
  village.cut({{kOutside}, {1, 2, 3}}, {1, 2, 3});
  village.pass(30s);
  EXPECT_EQ(village.elected.size(), 0u);
}

TEST(Elect, APromiseIsGivenOnceForATerm) {
  Village village(3);
  village.kill_coordinator(1);
  Election agent = village.agent(2);
  const Time later = agent.heard + 10s;
  const auto ask = [&](Term term, bool trial) {
    ElectDecision decision = elect(std::move(agent), PromiseAsked{term, trial}, later);
    agent = std::move(decision.state);
    return std::get<Answer>(decision.actions.back()).vote.granted;
  };
  EXPECT_TRUE(ask(2, true));
  EXPECT_TRUE(ask(2, false));
  EXPECT_FALSE(ask(2, false));
  EXPECT_FALSE(ask(1, false));
  EXPECT_TRUE(ask(3, false));
}

TEST(Elect, WhoPromisedHangsUpAndObeysNoOlderCoordinator) {
  Village village(3);
  Election agent = village.agent(2);
  const Time later = agent.heard + 10s;
  ElectDecision decision = elect(std::move(agent), PromiseAsked{5, false}, later);
  EXPECT_TRUE(
      std::ranges::any_of(decision.actions, [](const auto& action) { return std::holds_alternative<HangUp>(action); }));
  decision = elect(std::move(decision.state), Followed{{1, {}}}, later);
  EXPECT_FALSE(decision.state.connected);
}

TEST(Elect, AnAgentThatFindsNobodyForTooLongEnds) {
  Village village(3);
  village.cut({{kOutside}, {1}, {2}, {3}}, {});
  village.pass(700s);
  EXPECT_EQ(village.despaired.size(), 3u);
}

// Coordinators and machines are lost, links are cut and healed; at the end everybody follows one coordinator.
TEST(Elect, RandomCutsNeverMakeTwoCoordinatorsOfATermAndEndWithOne) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int count = 2 + static_cast<int>(random() % 5);
    Village village(count, static_cast<int>(random() % static_cast<unsigned>(count + 1)));
    for (int act = 0; act < 6; ++act) {
      std::vector<std::set<int>> groups(1 + random() % 3);
      std::set<int> folder;
      for (int number = 0; number <= count; ++number) {
        groups[random() % groups.size()].insert(number);
        if (random() % 4 != 0) folder.insert(number);
      }
      if (random() % 3 == 0)
        village.kill_coordinator(village.coordinators().empty() ? 1 : village.coordinators().rbegin()->first);
      village.cut(groups, folder);
      village.pass(std::chrono::milliseconds(random() % 15'000));
    }
    village.heal();
    village.pass(40s);
    ASSERT_FALSE(village.coordinators().empty()) << "seed " << seed;
    const Term last = village.coordinators().rbegin()->first;
    ASSERT_EQ(village.followers(last).size(), static_cast<std::size_t>(count)) << "seed " << seed;
  }
}

TEST(Claim, OneOfTwoGetsAGenerationAndKeepsIt) {
  const TemporaryFolder folder;
  EXPECT_TRUE(claim_generation(folder / "", 7, "one"));
  EXPECT_FALSE(claim_generation(folder / "", 7, "two"));
  EXPECT_TRUE(claim_generation(folder / "", 7, "one"));
  EXPECT_TRUE(claim_generation(folder / "", 8, "two"));
  write_file_atomic(folder / "file", "");
  EXPECT_THROW(claim_generation(folder / "file", 1, "one"), Error);
}

TEST(Circle, TravelsAsJson) {
  Circle circle = circle_of(3, {1, 2});
  circle.members = {{.worker = 7, .host = "w1", .slot = 1, .data = {"10.0.0.1", 99}}};
  Circles circles{.committed = circle, .prepared = circle_of(4, {2})};
  EXPECT_EQ(circles_from_json(to_json(circles)), circles);
  EXPECT_EQ(circles_from_json(Json::object({})), Circles{});
  learn(circles, {true, circle_of(4, {2})});
  EXPECT_EQ(circles.prepared, std::nullopt);
  learn(circles, {true, circle_of(3, {2})});
  EXPECT_EQ(circles.committed->generation, 4u);
}

}  // namespace
}  // namespace dtrain::elastic
