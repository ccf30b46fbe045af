#include "routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::comm {
namespace {

using Ranks = std::vector<int>;

std::vector<std::pair<int, int>> sums_of(const Route& route) {
  std::vector<std::pair<int, int>> sums;
  for (const Passing& sum : route.sums) sums.emplace_back(sum.from, sum.to);
  return sums;
}

// Nodes 0 to 3 are leaves of ranks 0 to 3; 4 is of ranks 0 and 1, 5 of 2 and 3, and 6 is the root.
TEST(Routes, HalveAndDoubleBetweenRanksWhoseNumbersDifferInABit) {
  const MergePlan plan(even_spans(4, 4));
  const Route third = route_of(plan, Way::halving, 2);
  EXPECT_EQ(third.holders, (Ranks{0, 1, 2, 3, 0, 2, 2}));
  EXPECT_EQ(sums_of(third), (std::vector<std::pair<int, int>>{{2, 0}, {0, 1}, {2, 3}}));
  EXPECT_EQ(route_of(plan, Way::halving, 1).holders, (Ranks{0, 1, 2, 3, 1, 3, 1}));
}

// Of twelve ranks three blocks of four: the owner's block sends to the next but one, and both to the next; then each
// rank to those of its block.
TEST(Routes, DoubleTheSumBetweenBlocksAndWithinThem) {
  const Route route = route_of(MergePlan(even_spans(12, 16)), Way::halving, 1);
  const auto sums = sums_of(route);
  EXPECT_EQ((std::vector(sums.begin(), sums.begin() + 2)), (std::vector<std::pair<int, int>>{{1, 9}, {1, 5}}));
  EXPECT_EQ(std::ranges::count(sums, std::pair(9, 11)), 1);
  EXPECT_EQ(std::ranges::count(sums, std::pair(11, 10)), 1);
  EXPECT_EQ(route.sums.front().round, 1);
  EXPECT_EQ(route.sums.back().round, 3);
}

TEST(Routes, LetAllRanksSendAsManySums) {
  for (const int ranks : {3, 5, 6, 12, 48, 50, 64}) {
    const MergePlan plan(even_spans(ranks, 64));
    std::vector<int> sends(static_cast<std::size_t>(ranks));
    for (int owner = 0; owner < ranks; ++owner) {
      for (const Passing& sum : route_of(plan, Way::halving, owner).sums) ++sends[static_cast<std::size_t>(sum.from)];
    }
    EXPECT_EQ(sends, std::vector<int>(static_cast<std::size_t>(ranks), ranks - 1));
  }
}

// With any number of ranks: one of the holders of two nodes or the owner holds their parent, the owner has the root,
// and the sum comes to every rank once, from one that has it.
TEST(Routes, MoveNodesToTheirHoldersAndTheSumToAll) {
  for (int ranks = 1; ranks <= 20; ++ranks) {
    for (const int shards : {1, 4, 8, 16, 64}) {
      const MergePlan plan(even_spans(ranks, shards));
      for (int owner = 0; owner < ranks; ++owner) {
        const Route route = route_of(plan, Way::halving, owner);
        for (std::size_t node = 0; node < route.holders.size(); ++node) {
          const MergeNode& here = plan.nodes()[node];
          const int expected = here.rank >= 0 ? here.rank : owner;
          if (here.rank >= 0 || here.parent < 0) {
            EXPECT_EQ(route.holders[node], expected);
          }
          if (here.parent < 0) continue;
          const int holder = route.holders[static_cast<std::size_t>(here.parent)];
          EXPECT_TRUE(holder == owner || holder == route.holders[node] ||
                      holder == route.holders[static_cast<std::size_t>(here.sibling)]);
        }
        Ranks have{owner};
        for (const Passing& sum : route.sums) {
          EXPECT_TRUE(std::ranges::count(have, sum.from) == 1 && std::ranges::count(have, sum.to) == 0);
          have.push_back(sum.to);
        }
        EXPECT_EQ(have.size(), static_cast<std::size_t>(ranks));
      }
    }
  }
}

TEST(Stations, AreTheSameAloneAndOfAllRanks) {
  const MergePlan plan(even_spans(6, 16));
  const std::vector<Station> all = Station::of_all_ranks(plan, Way::halving);
  for (int rank = 0; rank < 6; ++rank) {
    const Station alone(plan, Way::halving, rank);
    const Station& together = all[static_cast<std::size_t>(rank)];
    EXPECT_EQ(alone.stop_count(), together.stop_count());
    for (int owner = 0; owner < 6; ++owner) {
      EXPECT_EQ(alone.receivers_of_sum(owner), together.receivers_of_sum(owner));
      EXPECT_EQ(alone.sender_of_sum(owner), together.sender_of_sum(owner));
      EXPECT_EQ(alone.round_of_sum(owner), together.round_of_sum(owner));
      ASSERT_EQ(alone.stops(owner).size(), together.stops(owner).size());
      for (std::size_t i = 0; i < alone.stops(owner).size(); ++i) {
        EXPECT_EQ(alone.stops(owner)[i].node, together.stops(owner)[i].node);
        EXPECT_EQ(alone.stops(owner)[i].adder, together.stops(owner)[i].adder);
      }
    }
  }
}

TEST(Stations, FindANodeThatStopsThere) {
  const MergePlan plan(even_spans(4, 4));
  const Station station(plan, Way::halving, 1);
  const Station::Stop* const piece = station.find(0, 3);  // rank 0 sends it here, on the way to rank 3
  ASSERT_NE(piece, nullptr);
  EXPECT_EQ(piece->holder, 0);
  EXPECT_EQ(piece->adder, 1);
  EXPECT_EQ(station.find(4, 3)->adder, 3);
  EXPECT_EQ(station.find(2, 3), nullptr);
  EXPECT_EQ(station.find(-1, 3), nullptr);
  EXPECT_EQ(station.find(99, 3), nullptr);
}

}  // namespace
}  // namespace dtrain::comm
