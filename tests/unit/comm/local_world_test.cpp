#include <gtest/gtest.h>

#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {
namespace {

std::vector<TreePiece> pieces_of(int rank, int ranks, int shards) {
  TreeSum sum(shards, 2);
  const ShardSpan span = shards_of_rank(rank, ranks, shards);
  for (int shard = span.first; shard < span.last; ++shard) {
    sum.add({{0, shard}, {1.0f / static_cast<float>(shard + 1), 1.0f}});
  }
  return sum.take_pieces();
}

// What every rank of a world got.
std::vector<std::vector<float>> reduce_in_world(int ranks, int shards) {
  auto world = make_local_world(ranks);
  std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Communicator& comm = *world[static_cast<std::size_t>(rank)];
      for (int round = 0; round < 3; ++round) {
        results[static_cast<std::size_t>(rank)] = comm.reduce_tree(pieces_of(rank, ranks, shards), shards, 2);
      }
      comm.barrier();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

TEST(LocalWorld, GivesEveryRankTheSameBitsForAnyNumberOfRanks) {
  const std::vector<float> expected = make_single()->reduce_tree(pieces_of(0, 1, 8), 8, 2);
  EXPECT_EQ(expected[1], 8.0f);
  for (int ranks : {1, 2, 3, 5, 11}) {
    for (const std::vector<float>& result : reduce_in_world(ranks, 8)) EXPECT_EQ(result, expected) << ranks;
  }
}

TEST(LocalWorld, TurnsALeavingRankIntoPeerLost) {
  auto world = make_local_world(3);
  std::thread leaver([&] { world[2].reset(); });
  EXPECT_THROW(world[0]->barrier(), PeerLost);
  leaver.join();
  EXPECT_THROW(world[1]->reduce_tree({}, 4, 1), PeerLost);
}

}  // namespace
}  // namespace dtrain::comm
