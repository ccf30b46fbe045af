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
  Joining(const ReductionShape& leaves, ShardSpan span) : Joining(leaves, span, own_pool) {}
  Joining(const ReductionShape& leaves, ShardSpan span, FloatPool& pool)
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
  FloatPool own_pool;
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

// Of a leaf of three buckets and a bit, the second and the third are deferred, and a part of those around them.
constexpr std::int64_t kFourBuckets = 800'000;
constexpr FloatRange kDeferred{100'000, 690'000};

void add_deferred(Joining& joining, int shard) {
  const std::span<float> leaf = joining.joiner.leaf(shard);
  const auto give = [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) leaf[static_cast<std::size_t>(i)] = awkward(shard, i);
    joining.joiner.ready(shard, first, end - first);
  };
  give(0, kDeferred.first);
  joining.joiner.defer(shard, kDeferred, deferred_leaf(shard));
  give(kDeferred.first + kDeferred.size, joining.shape.size);
}

TEST(LeafJoiner, ComputesWhatIsDeferredAsItAddsWhatIsNot) {
  for (const std::int64_t rounded : {std::int64_t{0}, std::int64_t{600'000}, kFourBuckets}) {
    for (const unsigned eager : {0u, 1u, 0b0010'0000u, 0b0101'1010u}) {
      const ReductionShape shape{.shards = 8, .size = kFourBuckets, .rounded = rounded};
      Joining joining(shape, {0, 8});
      for (const int shard : {3, 6, 0, 7, 1, 2, 5, 4}) {
        if (eager >> shard & 1) {
          joining.add(shard);
        } else {
          add_deferred(joining, shard);
        }
        if (shard % 2 == 0) joining.joiner.compute_deferred();
      }
      EXPECT_EQ(joining.pieces.size(), joining.joiner.buckets().size());
      EXPECT_TRUE(same_bits(joining.joiner.first_memory(), direct_tree(shape))) << rounded << " " << eager;
    }
  }
}

TEST(LeafJoiner, ComputesALeafThatIsDeferredAsAWhole) {
  const ReductionShape shape{.shards = 2, .size = kFourBuckets};
  Joining joining(shape, {0, 2});
  joining.joiner.leaf(1);
  joining.joiner.defer(1, {0, kFourBuckets}, deferred_leaf(1));
  joining.joiner.compute_deferred();
  joining.add(0);
  EXPECT_TRUE(same_bits(joining.joiner.first_memory(), direct_tree(shape)));
}

TEST(LeafJoiner, ComputesDeferredPiecesThatItCannotJoin) {
  Joining joining({.shards = 8, .size = kFourBuckets}, {3, 7});
  for (const int shard : {6, 3, 4, 5}) add_deferred(joining, shard);
  joining.joiner.compute_deferred();
  const std::size_t middle = 300'000 - (256 << 10);  // of a bucket that is deferred
  std::map<TreeNode, float> sums;
  for (const Piece& piece : joining.pieces) {
    if (piece.bucket == 1) sums[piece.node] = piece.values[middle];
  }
  const float pair = awkward(4, 300'000) + awkward(5, 300'000);
  EXPECT_EQ(sums,
            (std::map<TreeNode, float>{{{0, 3}, awkward(3, 300'000)}, {{1, 2}, pair}, {{0, 6}, awkward(6, 300'000)}}));
}

TEST(LeafJoiner, ComputesNothingThatIsDeferredBeforeItIsAsked) {
  Joining joining({.shards = 2, .size = kFourBuckets}, {0, 2});
  add_deferred(joining, 0);
  joining.joiner.compute_deferred();
  EXPECT_TRUE(joining.pieces.empty()) << "its sibling is not there";
  add_deferred(joining, 1);
  EXPECT_EQ(joining.pieces.size(), 2u) << "the first bucket and the last";
  joining.joiner.compute_deferred();
  EXPECT_EQ(joining.pieces.size(), 4u);
}

TEST(LeafJoiner, TakesDeferredLeavesFromManyThreads) {
  const ReductionShape shape{.shards = 16, .size = kFourBuckets};
  for (int round = 0; round < 5; ++round) {
    Joining joining(shape, {0, 16});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int shard = t; shard < 16; shard += 4) {
          add_deferred(joining, shard);
          joining.joiner.compute_deferred();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(same_bits(joining.joiner.first_memory(), direct_tree(shape)));
  }
}

// Memory that is never touched costs nothing, so leaves must not lie where sums did.
TEST(LeafJoiner, WritesWhatIsDeferredToTheMemoryOfSumsAlone) {
  std::vector<float*> made;
  FloatPool pool([&](std::int64_t size) {
    FloatBuffer buffer(size);
    std::ranges::fill(buffer, -7.0f);
    made.push_back(buffer.data());
    return buffer;
  });
  for (int step = 0; step < 4; ++step) {
    Joining joining({.shards = 8, .size = kFourBuckets}, {0, 8}, pool);
    for (int shard = 7; shard >= 0; --shard) add_deferred(joining, shard);
    joining.joiner.compute_deferred();
  }
  const auto was_written = [](const float* buffer) { return buffer[400'000] != -7.0f; };
  EXPECT_EQ(std::ranges::count_if(made, was_written), 1);
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
