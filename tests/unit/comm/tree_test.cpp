#include <dtrain/comm/tree.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

namespace dtrain::comm {
namespace {

TreePiece leaf(int shard, float value) { return {{0, shard}, {value}}; }

// Values whose float32 sum depends on the grouping.
float awkward(int shard) { return (shard % 2 ? 1e8f : 1.0f) / static_cast<float>(shard + 3); }

float sum_of_tree(int first, int last) {
  if (last - first == 1) return awkward(first);
  const int middle = (first + last) / 2;
  return sum_of_tree(first, middle) + sum_of_tree(middle, last);
}

TEST(Tree, CoversARangeWithTheFewestCompleteSubtrees) {
  EXPECT_EQ(covering_nodes(0, 8), (std::vector<TreeNode>{{3, 0}}));
  EXPECT_EQ(covering_nodes(3, 8), (std::vector<TreeNode>{{0, 3}, {2, 1}}));
  EXPECT_EQ(covering_nodes(1, 7), (std::vector<TreeNode>{{0, 1}, {1, 1}, {1, 2}, {0, 6}}));
  EXPECT_TRUE(covering_nodes(5, 5).empty());
}

TEST(Tree, SharesShardsInContiguousSpansThatDifferByAtMostOne) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    int next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const ShardSpan span = shards_of_rank(rank, ranks, 8);
      EXPECT_EQ(span.first, next);
      EXPECT_LE(span.last - span.first, 8 / ranks + 1);
      next = span.last;
    }
    EXPECT_EQ(next, 8);
  }
}

TEST(TreeSum, GroupsByTheTreeWhateverTheOrderOfArrival) {
  std::vector<int> order(16);
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < 20; ++round) {
    TreeSum sum(16, 1);
    for (int shard : order) sum.add(leaf(shard, awkward(shard)));
    const std::vector<TreePiece> pieces = sum.take_pieces();
    ASSERT_EQ(pieces.size(), 1u);
    EXPECT_EQ(pieces[0].values[0], sum_of_tree(0, 16));
    std::rotate(order.begin(), order.begin() + 5, order.end());
    std::swap(order[0], order[7]);
  }
}

TEST(TreeSum, KeepsWhatItCannotJoin) {
  TreeSum sum(8, 1);
  for (int shard : {6, 3, 4, 5}) sum.add(leaf(shard, 1.0f));
  const std::vector<TreePiece> pieces = sum.take_pieces();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].node, (TreeNode{0, 3}));
  EXPECT_EQ(pieces[1].node, (TreeNode{1, 2}));
  EXPECT_EQ(pieces[1].values[0], 2.0f);
  EXPECT_EQ(pieces[2].node, (TreeNode{0, 6}));
}

TEST(TreeSum, TakesLeavesFromManyThreads) {
  constexpr int kShards = 64;
  TreeSum sum(kShards, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int shard = t; shard < kShards; shard += 4) sum.add(leaf(shard, awkward(shard)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.take_pieces().at(0).values[0], sum_of_tree(0, kShards));
}

}  // namespace
}  // namespace dtrain::comm
