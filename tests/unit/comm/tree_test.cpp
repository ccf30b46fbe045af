#include <dtrain/comm/tree.hpp>

#include <gtest/gtest.h>

namespace dtrain::comm {
namespace {

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

TEST(Tree, GivesEachRankOneNodeWhereItHasFewerThanTwoShards) {
  for (int ranks = 33; ranks <= 64; ++ranks) {
    for (const ShardSpan& span : even_spans(ranks, 64)) EXPECT_EQ(covering_nodes(span.first, span.last).size(), 1U);
  }
}

}  // namespace
}  // namespace dtrain::comm
