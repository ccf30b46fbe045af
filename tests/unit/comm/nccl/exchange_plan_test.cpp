#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "nccl/exchange_plan.hpp"
#include "nccl/local_sums.hpp"

namespace dtrain::comm::nccl {
namespace {

struct World {
  World(int ranks, int shards, const Bucket& part) : merge(even_spans(ranks, shards)) {
    for (int rank = 0; rank < ranks; ++rank) plans.push_back(plan_exchange(merge, part, rank, ranks));
  }
  const MergePlan merge;
  std::vector<ExchangePlan> plans;  // [rank]
};

// What one side moves with each peer, in its order.
using Words = std::vector<std::array<std::int64_t, 3>>;
std::map<int, Words> by_peer(const std::vector<Transfer>& transfers) {
  std::map<int, Words> words;
  for (const Transfer& t : transfers) words[t.peer].push_back({t.node, t.chunk.first, t.chunk.size});
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
  for (const int shards : {1, 2, 8, 16}) {
    for (const Bucket& part : {Bucket{0, 500, true}, {500, 503, false}, {7, 5, false}}) {
      for (int ranks = 1; ranks <= 7; ++ranks) {
        const World world(ranks, shards, part);
        expect_match(world, &ExchangePlan::piece_sends, &ExchangePlan::piece_receptions);
        expect_match(world, &ExchangePlan::sum_sends, &ExchangePlan::sum_receptions);
      }
    }
  }
}

TEST(ExchangePlan, JoinsEveryNodeOfTheOwnedChunkOnceAndChildrenFirst) {
  for (int ranks : {1, 2, 3, 5, 16}) {
    const World world(ranks, 16, {300, 700, false});
    for (const ExchangePlan& plan : world.plans) {
      std::set<int> known;
      for (int node = 0; node < world.merge.pieces(); ++node) known.insert(node);
      for (const Join& join : plan.joins) {
        EXPECT_EQ(known.erase(join.left), 1u);
        EXPECT_EQ(known.erase(join.right), 1u);
        EXPECT_TRUE(known.insert(join.node).second);
      }
      EXPECT_EQ(known, std::set<int>{plan.root});
    }
  }
}

TEST(ExchangePlan, OwnsEachFloatOnce) {
  std::vector<int> owners(1000);
  for (const Bucket& part : parts_of({.shards = 4, .size = 1000, .rounded = 301}, {{301, 699}, {100, 201}, {0, 100}})) {
    EXPECT_EQ(part.rounded, part.first < 301);
    for (const ExchangePlan& plan : World(3, 4, part).plans) {
      for (std::int64_t i = plan.own.first; i < plan.own.first + plan.own.size; ++i) {
        ++owners[static_cast<std::size_t>(i)];
      }
    }
  }
  EXPECT_EQ(owners, std::vector<int>(1000, 1));
}

// Runs the plan on words: what is left are the nodes that cover the span, each made of left + right.
TEST(LocalSums, LeaveTheNodesThatCoverTheSpan) {
  const auto name = [](TreeNode node) { return fmt::format("{}.{}", node.level, node.index); };
  for (int first = 0; first < 16; ++first) {
    for (int last = first; last <= 16; ++last) {
      const LocalSums plan = plan_local_sums({first, last});
      std::vector<TreeNode> slots;
      for (int shard = first; shard < last; ++shard) {
        const LeafPlace& place = plan.leaves[static_cast<std::size_t>(shard - first)];
        ASSERT_EQ(place.slot, static_cast<int>(slots.size()));
        slots.push_back({0, shard});
        ASSERT_LE(static_cast<int>(slots.size()), plan.slots);
        for (int k = 0; k < place.additions; ++k) {
          const TreeNode right = slots.back();
          slots.pop_back();
          ASSERT_TRUE(is_left(slots.back()) && slots.back().index + 1 == right.index) << name(right);
          slots.back() = parent_of(right);
        }
      }
      EXPECT_EQ(slots, covering_nodes(first, last)) << first << " to " << last;
      EXPECT_EQ(plan.pieces, static_cast<int>(slots.size()));
    }
  }
}

}  // namespace
}  // namespace dtrain::comm::nccl
