#include "reduce_schedule.hpp"

#include <gtest/gtest.h>

namespace dtrain::comm {
namespace {

// Two ranks, two shards, one bucket of 64 floats: a chunk of 32 for each.
struct TwoRanks {
  MergePlan plan{even_spans(2, 2)};
  std::vector<Bucket> buckets = cut_into_buckets({.shards = 2, .size = 64});
  ReduceSchedule second{plan, buckets, 1, 2};
};

std::vector<std::pair<int, std::int64_t>> frames(const ReduceSchedule& schedule, FrameKind kind) {
  std::vector<std::pair<int, std::int64_t>> frames;
  schedule.for_each_frame(kind, 0, [&](int to, const Chunk& part) { frames.emplace_back(to, part.first); });
  return frames;
}

TEST(ReduceSchedule, SendsPiecesToOwnersAndItsSumToAllBeginningWithTheRightNeighbour) {
  const MergePlan plan(even_spans(4, 4));
  const std::vector<Bucket> buckets = cut_into_buckets({.shards = 4, .size = 64});
  const ReduceSchedule schedule(plan, buckets, 2, 4);
  using Frames = std::vector<std::pair<int, std::int64_t>>;
  EXPECT_EQ(frames(schedule, FrameKind::piece), (Frames{{3, 48}, {0, 0}, {1, 16}}));
  EXPECT_EQ(frames(schedule, FrameKind::final), (Frames{{3, 32}, {0, 32}, {1, 32}}));
}

TEST(ReduceSchedule, AddsLeftFirstInWhateverOrderNodesCome) {
  for (const bool own_first : {true, false}) {
    TwoRanks two;
    EXPECT_FALSE(two.second.join(0, own_first ? 1 : 0));
    const auto addition = two.second.join(0, own_first ? 0 : 1);
    ASSERT_TRUE(addition);
    EXPECT_EQ(addition->left, 0);
    EXPECT_EQ(addition->right, 1);
    EXPECT_TRUE(addition->is_root);
    EXPECT_TRUE(two.second.is_root(addition->node));
    EXPECT_FALSE(two.second.join(0, addition->node));
  }
}

TEST(ReduceSchedule, IsCompleteWithTheLastFrameAndBlamesWhoHoldsUpOthersFirst) {
  TwoRanks two;
  ReduceSchedule& schedule = two.second;
  schedule.have_own_piece(0);
  schedule.have_begin(0);
  EXPECT_EQ(schedule.blamed(), std::vector<int>{0});
  schedule.have_piece(0, 0, 0);
  EXPECT_TRUE(schedule.is_piece_seen(0, 0));
  schedule.have_sum_of_own_chunk();
  EXPECT_TRUE(schedule.needs(0));
  EXPECT_FALSE(schedule.is_complete());
  schedule.have_final(0, 0);
  EXPECT_TRUE(schedule.is_final_seen(0, 0));
  EXPECT_FALSE(schedule.needs(0));
  EXPECT_TRUE(schedule.is_complete());
  EXPECT_TRUE(schedule.blamed().empty());
}

}  // namespace
}  // namespace dtrain::comm
