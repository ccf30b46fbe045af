#include "leaf_joiner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>

#include "world.hpp"

namespace dtrain::comm {
namespace {

// Leaves of a shape over shards [first, last), and the pieces that came of them.
struct Joining {
  Joining(const ReductionShape& leaves, ShardSpan span)
      : shape(leaves), joiner(leaves, span, pool, [this](const Piece& piece) {
          const std::lock_guard lock(mutex);
          pieces.push_back(piece);
        }) {}
  void add(int shard) {
    const std::span<float> leaf = joiner.leaf(shard);
    for (std::size_t i = 0; i < leaf.size(); ++i) leaf[i] = awkward(shard, static_cast<std::int64_t>(i));
    joiner.ready(shard, 0, shape.size);
  }
  ReductionShape shape;
  FloatPool pool;
  std::mutex mutex;
  std::vector<Piece> pieces;
  LeafJoiner joiner;
};

TEST(LeafJoiner, GroupsByTheTreeWhateverTheOrderOfArrival) {
  const ReductionShape shape{.shards = 16, .size = 3};
  const std::vector<float>& expected = direct_tree(shape);
  std::vector<int> order(16);
  std::iota(order.begin(), order.end(), 0);
  for (int round = 0; round < 20; ++round) {
    Joining joining(shape, {0, 16});
    for (int shard : order) joining.add(shard);
    ASSERT_EQ(joining.pieces.size(), 1u);
    EXPECT_TRUE(same_bits(joining.joiner.first_memory(), expected));
    std::rotate(order.begin(), order.begin() + 5, order.end());
    std::swap(order[0], order[7]);
  }
}

TEST(LeafJoiner, KeepsWhatItCannotJoin) {
  Joining joining({.shards = 8, .size = 1}, {3, 7});
  for (int shard : {6, 3, 4, 5}) joining.add(shard);
  std::vector<TreeNode> nodes;
  for (const Piece& piece : joining.pieces) nodes.push_back(piece.node);
  EXPECT_EQ(nodes, (std::vector<TreeNode>{{0, 6}, {0, 3}, {1, 2}}));
  EXPECT_EQ(joining.pieces[2].values[0], awkward(4, 0) + awkward(5, 0));
}

TEST(LeafJoiner, AddsFourNeighboursPairByPairAndPairsAtTheEndsOfItsSpan) {
  Joining joining({.shards = 16, .size = 1}, {2, 11});
  for (int shard : {7, 10, 2, 4, 9, 6, 8, 3, 5}) joining.add(shard);
  std::map<TreeNode, float> sums;
  for (const Piece& piece : joining.pieces) sums[piece.node] = piece.values[0];
  const auto pair = [](int first) { return awkward(first, 0) + awkward(first + 1, 0); };
  EXPECT_EQ(sums, (std::map<TreeNode, float>{
                      {{1, 1}, pair(2)}, {{2, 1}, pair(4) + pair(6)}, {{1, 4}, pair(8)}, {{0, 10}, awkward(10, 0)}}));
}

TEST(LeafJoiner, NeedsFiveLeavesForEightShardsThatComeInTheirOrder) {
  int made = 0;
  FloatPool pool([&](std::int64_t size) {
    ++made;
    return FloatBuffer(size);
  });
  LeafJoiner joiner({.shards = 8, .size = 100}, {0, 8}, pool, [](const Piece&) {});
  for (int shard = 0; shard < 8; ++shard) {
    std::ranges::fill(joiner.leaf(shard), 1.0f);
    joiner.ready(shard, 0, 100);
  }
  EXPECT_EQ(made, 5);
}

TEST(LeafJoiner, HandsOutABucketAsSoonAsItsLeavesAreReady) {
  constexpr std::int64_t kSize = 700'000;
  Joining joining({.shards = 2, .size = kSize}, {0, 2});
  const std::size_t buckets = joining.joiner.buckets().size();
  ASSERT_GT(buckets, 2u);
  joining.add(0);
  std::ranges::fill(joining.joiner.leaf(1), 1.0f);
  joining.joiner.ready(1, kSize - 1, 1);
  EXPECT_TRUE(joining.pieces.empty());
  joining.joiner.ready(1, 300'000, kSize - 300'001);
  EXPECT_EQ(joining.pieces.size(), buckets - 2);
  joining.joiner.ready(1, 0, 300'000);
  EXPECT_EQ(joining.pieces.size(), buckets);
}

TEST(LeafJoiner, TakesLeavesFromManyThreads) {
  const ReductionShape shape{.shards = 64, .size = 1000, .rounded = 500};
  Joining joining(shape, {0, 64});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int shard = t; shard < 64; shard += 4) joining.add(shard);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(same_bits(joining.joiner.first_memory(), direct_tree(shape)));
}

TEST(Buckets, CoverTheBufferAndNoneIsPartlyRounded) {
  const std::vector<Bucket> buckets = cut_into_buckets({.shards = 1, .size = 1'000'000, .rounded = 300'001});
  std::int64_t next = 0;
  for (const Bucket& bucket : buckets) {
    EXPECT_EQ(bucket.first, next);
    EXPECT_EQ(bucket.rounded, bucket.first < 300'001);
    for (std::int64_t position : {bucket.first, bucket.first + bucket.size - 1}) {
      EXPECT_EQ(buckets[static_cast<std::size_t>(bucket_of(buckets, position))].first, bucket.first);
    }
    std::int64_t chunk = bucket.first;
    for (int owner = 0; owner < 5; ++owner) {
      EXPECT_EQ(chunk_of(bucket, owner, 5).first, chunk);
      chunk += chunk_of(bucket, owner, 5).size;
    }
    next = bucket.first + bucket.size;
    EXPECT_EQ(chunk, next);
  }
  EXPECT_EQ(next, 1'000'000);
}

// Every float has one owner, and owners differ by a cache line or two in each stripe.
void expect_fair(const std::vector<Bucket>& buckets, int ranks) {
  const Owners owners(buckets, ranks);
  std::vector<std::int64_t> owned(static_cast<std::size_t>(ranks));
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    std::int64_t next = buckets[b].first;
    for (int owner = 0; owner < ranks; ++owner) {
      const Chunk chunk = owners.chunk(b, owner);
      if (chunk.size == 0) continue;
      ASSERT_EQ(chunk.first, next);
      next += chunk.size;
      owned[static_cast<std::size_t>(owner)] += chunk.size;
    }
    ASSERT_EQ(next, buckets[b].first + buckets[b].size);
  }
  const auto [least, most] = std::ranges::minmax(owned);
  EXPECT_LE(most - least, 32 * static_cast<std::int64_t>(buckets.size())) << ranks;
}

TEST(Owners, HaveEquallyMuchOfTheBufferWhateverTheirNumber) {
  for (const int ranks : {1, 2, 3, 16, 64, 65, 200, 256, 1000, 1024, 4096}) {
    expect_fair(cut_into_buckets({.shards = 1, .size = 25'000'000, .rounded = 10'000'001}), ranks);
    expect_fair(cut_into_buckets({.shards = 1, .size = 100}), ranks);
  }
}

TEST(Owners, ShareEachBucketAmongAllRanksAsLongAsChunksAreLargeEnough) {
  const std::vector<Bucket> buckets = cut_into_buckets({.shards = 1, .size = 25'000'000});
  const auto chunks = [&](int ranks) {  // of the buckets, on average
    const Owners owners(buckets, ranks);
    std::size_t count = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      for (int owner = 0; owner < ranks; ++owner) count += owners.chunk(b, owner).size > 0;
    }
    return static_cast<double>(count) / static_cast<double>(buckets.size());
  };
  EXPECT_EQ(chunks(8), 8);
  EXPECT_EQ(chunks(64), 64);
  EXPECT_NEAR(chunks(256), 64, 2);
  EXPECT_NEAR(chunks(1024), 64, 2);
}

}  // namespace
}  // namespace dtrain::comm
