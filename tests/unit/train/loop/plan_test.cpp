#include <gtest/gtest.h>

#include <dtrain/train/plan.hpp>

namespace dtrain::train {
namespace {

TEST(EpochPlan, EndsWithASmallerStep) {
  const EpochPlan plan{.samples = 50000, .global_batch = 128, .shards = 4};
  EXPECT_EQ(plan.steps_from(0), 391u);
  EXPECT_EQ(plan.step_size(0), 128);
  EXPECT_EQ(plan.step_size(390 * 128), 80);
  EXPECT_EQ(plan.steps_from(390 * 128), 1u);
  EXPECT_EQ(plan.steps_from(50000), 0u);
}

// Walks through an epoch: every sample goes to exactly one shard, every shard to exactly one rank.
void expect_each_once(const EpochPlan& plan, int ranks) {
  for (std::uint64_t position = 0; position < plan.samples;) {
    std::uint64_t next = position;
    int next_shard = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankStep mine = rank_step(plan, position, comm::shards_of_rank(rank, ranks, plan.shards));
      EXPECT_EQ(mine.slice.first, next);
      for (const backend::ShardRange& shard : mine.shards) {
        EXPECT_EQ(shard.index, next_shard++);
        EXPECT_EQ(mine.slice.first + static_cast<std::uint64_t>(shard.first), next);
        next += static_cast<std::uint64_t>(shard.count);
      }
      EXPECT_EQ(mine.slice.first + static_cast<std::uint64_t>(mine.slice.count), next);
    }
    position += static_cast<std::uint64_t>(plan.step_size(position));
    EXPECT_EQ(next, position);
    EXPECT_EQ(next_shard, plan.shards);
  }
}

TEST(EpochPlan, GivesEverySampleOfAStepToExactlyOneShardForAnyNumberOfRanks) {
  for (int ranks : {1, 2, 3, 5, 16, 20}) {
    expect_each_once({.samples = 1003, .global_batch = 100, .shards = 16}, ranks);
  }
}

TEST(EpochPlan, GivesEveryWorkerOneShardOfItsOwnSizeWhereTheOtherShardsAreEmpty) {
  const EpochPlan plan{.samples = 1003, .global_batch = 5 * 20, .shards = 8, .workers = 5};
  expect_each_once(plan, 5);
  for (int rank = 0; rank < 5; ++rank)
    EXPECT_EQ(rank_step(plan, 0, comm::shards_of_rank(rank, 5, plan.shards)).slice.count, 20);
}

TEST(EpochPlan, CutsShardsAtTheSamePlacesForAnyNumberOfRanks) {
  const EpochPlan plan{.samples = 10, .global_batch = 10, .shards = 4};
  const RankStep all = rank_step(plan, 0, comm::shards_of_rank(0, 1, plan.shards));
  const RankStep second = rank_step(plan, 0, comm::shards_of_rank(1, 2, plan.shards));
  EXPECT_EQ(all.shards[2].count, second.shards[0].count);
  EXPECT_EQ(static_cast<std::uint64_t>(all.shards[2].first), second.slice.first);
}

// Groups of 25, 10 and 13 in batches of 10: 4 whole steps, then 5 and 3.
TEST(EpochPlan, EndsWithTheRemaindersOfGroups) {
  const std::vector<data::PictureGroup> groups = {{{3, 8, 16}, 25}, {{3, 16, 8}, 10}, {{3, 8, 8}, 13}};
  const EpochPlan plan{.samples = 48, .global_batch = 10, .shards = 4, .last = last_steps(groups, 10)};
  EXPECT_EQ(plan.last, (std::vector<int>{5, 3}));
  EXPECT_EQ(plan.steps_from(0), 6u);
  EXPECT_EQ(plan.steps_from(30), 3u);
  EXPECT_EQ(plan.steps_from(40), 2u);
  EXPECT_EQ(plan.steps_from(45), 1u);
  EXPECT_EQ(plan.steps_from(48), 0u);
  EXPECT_EQ(plan.step_size(30), 10);
  EXPECT_EQ(plan.step_size(40), 5);
  EXPECT_EQ(plan.step_size(45), 3);
  for (const int ranks : {1, 2, 3, 5}) expect_each_once(plan, ranks);
}

TEST(EvaluationBlocks, GoToRanksInTurn) {
  const EpochPlan plan{.samples = 250, .global_batch = 100};
  const auto blocks = evaluation_blocks(plan, 0, 2);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[1].first, 200u);
  EXPECT_EQ(blocks[1].count, 50);
  EXPECT_EQ(evaluation_blocks(plan, 1, 2).size(), 1u);
}

}  // namespace
}  // namespace dtrain::train
