#include "reduce_schedule.hpp"

#include <gtest/gtest.h>

namespace dtrain::comm {
namespace {

// Two ranks, two shards, one bucket of 64 floats: a chunk of 32 for each.
struct TwoRanks {
  const MergePlan plan{even_spans(2, 2)};
  const Station station{plan, Way::halving, 1};
  const std::vector<Bucket> buckets = cut_into_buckets({.shards = 2, .size = 64});
  ReduceSchedule second{station, buckets};
};

// Four of them with a shard each.
struct FourRanks {
  explicit FourRanks(int rank) : station(plan, Way::halving, rank) {}
  const MergePlan plan{even_spans(4, 4)};
  const Station station;
  const std::vector<Bucket> buckets = cut_into_buckets({.shards = 4, .size = 64});
  const ReduceSchedule schedule{station, buckets};
};

TEST(ReduceSchedule, VisitsTheChunkOfItsRightNeighbourFirstAndItsOwnLast) {
  const FourRanks four(2);
  std::vector<std::pair<int, std::int64_t>> visited;
  four.schedule.for_each_chunk(0, [&](int owner, const Chunk& part) { visited.emplace_back(owner, part.first); });
  EXPECT_EQ(visited, (std::vector<std::pair<int, std::int64_t>>{{3, 48}, {0, 0}, {1, 16}, {2, 32}}));
  EXPECT_EQ(four.schedule.receivers_of_sum(2), (std::vector<int>{0, 3}));
  EXPECT_TRUE(four.schedule.receivers_of_sum(1).empty());
}

TEST(ReduceSchedule, AwaitsWhatARouteBringsAndNothingElse) {
  const FourRanks four(1);
  const ReduceSchedule& schedule = four.schedule;
  EXPECT_TRUE(schedule.awaits_piece(0, 0, 0, 3));
  EXPECT_TRUE(schedule.awaits_piece(0, 0, 0, 1));
  EXPECT_TRUE(schedule.awaits_piece(3, 0, 5, 1));   // what ranks 2 and 3 have added for this rank
  EXPECT_FALSE(schedule.awaits_piece(0, 0, 0, 2));  // this rank sends its own to rank 0
  EXPECT_FALSE(schedule.awaits_piece(2, 0, 2, 1));
  EXPECT_FALSE(schedule.awaits_piece(3, 0, 5, 3));
  EXPECT_FALSE(schedule.awaits_piece(0, 0, 7, 3));
  EXPECT_FALSE(schedule.awaits_piece(0, 0, -1, 3));
  EXPECT_FALSE(schedule.awaits_piece(0, 0, 0, 4));
  EXPECT_FALSE(schedule.awaits_piece(0, 0, 0, -1));
  EXPECT_TRUE(schedule.awaits_final(3, 0, 3));
  EXPECT_TRUE(schedule.awaits_final(0, 0, 2));
  EXPECT_FALSE(schedule.awaits_final(2, 0, 2));
  EXPECT_FALSE(schedule.awaits_final(1, 0, 1));
  EXPECT_FALSE(schedule.awaits_final(3, 0, 4));
  EXPECT_EQ(schedule.receivers_of_sum(3), std::vector<int>{0});
}

TEST(ReduceSchedule, AddsLeftFirstInWhateverOrderNodesCome) {
  for (const bool own_first : {true, false}) {
    TwoRanks two;
    EXPECT_FALSE(two.second.join(0, own_first ? 1 : 0, 1));
    const auto addition = two.second.join(0, own_first ? 0 : 1, 1);
    ASSERT_TRUE(addition);
    EXPECT_EQ(addition->left, 0);
    EXPECT_EQ(addition->right, 1);
    EXPECT_TRUE(addition->is_root);
    EXPECT_TRUE(two.second.is_root(addition->node));
    EXPECT_FALSE(two.second.join(0, addition->node, 1));
  }
}

TEST(ReduceSchedule, IsCompleteWithTheLastFrameAndBlamesWhoHoldsUpOthersFirst) {
  TwoRanks two;
  ReduceSchedule& schedule = two.second;
  schedule.have_own_piece(0);
  schedule.have_begin(0);
  EXPECT_EQ(schedule.blamed(), std::vector<int>{0});
  schedule.have_piece(0, 0, 0, 1);
  EXPECT_TRUE(schedule.is_piece_seen(0, 0, 1));
  schedule.have_sum_of_own_chunk();
  EXPECT_TRUE(schedule.needs(0));
  EXPECT_FALSE(schedule.is_complete());
  schedule.have_final(0, 0, 0);
  EXPECT_TRUE(schedule.is_final_seen(0, 0));
  EXPECT_FALSE(schedule.needs(0));
  EXPECT_TRUE(schedule.is_complete());
  EXPECT_TRUE(schedule.blamed().empty());
}

}  // namespace
}  // namespace dtrain::comm
