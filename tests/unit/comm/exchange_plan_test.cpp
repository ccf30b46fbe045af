#include "nccl/exchange_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace dtrain::comm::nccl {
namespace {

struct World {
  World(int ranks, const ReductionShape& shape) : merge(ranks, shape.shards) {
    for (int rank = 0; rank < ranks; ++rank) plans.push_back(plan_exchange(merge, shape, rank, ranks));
  }
  const MergePlan merge;
  std::vector<ExchangePlan> plans;  // [rank]
};

// What one side moves with each peer, in its order.
using Words = std::vector<std::array<std::int64_t, 4>>;
std::map<int, Words> by_peer(const std::vector<Transfer>& transfers) {
  std::map<int, Words> words;
  for (const Transfer& t : transfers) words[t.peer].push_back({t.part, t.node, t.chunk.first, t.chunk.size});
  return words;
}

void expect_match(const World& world, std::vector<Transfer> ExchangePlan::*sends,
                  std::vector<Transfer> ExchangePlan::*receptions) {
  for (int from = 0; from < static_cast<int>(world.plans.size()); ++from) {
    for (int to = 0; to < static_cast<int>(world.plans.size()); ++to) {
      auto sent = by_peer(world.plans[static_cast<std::size_t>(from)].*sends);
      auto received = by_peer(world.plans[static_cast<std::size_t>(to)].*receptions);
      EXPECT_EQ(sent[to], received[from]) << from << " to " << to << " of " << world.plans.size();
    }
  }
}

TEST(ExchangePlan, SendsWhatTheOtherSideReceivesInTheSameOrder) {
  for (const ReductionShape& shape : {ReductionShape{8, 1003, 500}, {16, 40, 0}, {2, 5, 5}, {1, 100, 0}}) {
    for (int ranks = 1; ranks <= 7; ++ranks) {
      const World world(ranks, shape);
      expect_match(world, &ExchangePlan::piece_sends, &ExchangePlan::piece_receptions);
      expect_match(world, &ExchangePlan::sum_sends, &ExchangePlan::sum_receptions);
    }
  }
}

TEST(ExchangePlan, JoinsEveryNodeOfEveryOwnedChunkOnceAndChildrenFirst) {
  const ReductionShape shape{.shards = 16, .size = 1000, .rounded = 300};
  for (int ranks : {1, 2, 3, 5, 16}) {
    const World world(ranks, shape);
    for (const ExchangePlan& plan : world.plans) {
      std::set<std::pair<int, int>> known;
      for (int part = 0; part < 2; ++part) {
        for (int node = 0; node < world.merge.pieces(); ++node) known.insert({part, node});
      }
      for (const Join& join : plan.joins) {
        EXPECT_EQ(known.erase({join.part, join.left}), 1u);
        EXPECT_EQ(known.erase({join.part, join.right}), 1u);
        EXPECT_TRUE(known.insert({join.part, join.node}).second);
      }
      EXPECT_EQ(known, (std::set<std::pair<int, int>>{{0, plan.root}, {1, plan.root}}));
    }
  }
}

TEST(ExchangePlan, OwnsEachFloatOnce) {
  const ReductionShape shape{.shards = 4, .size = 1000, .rounded = 301};
  const World world(3, shape);
  std::vector<int> owners(1000);
  for (const ExchangePlan& plan : world.plans) {
    for (const Chunk& chunk : plan.own) {
      for (std::int64_t i = chunk.first; i < chunk.first + chunk.size; ++i) ++owners[static_cast<std::size_t>(i)];
    }
  }
  EXPECT_EQ(owners, std::vector<int>(1000, 1));
}

}  // namespace
}  // namespace dtrain::comm::nccl
