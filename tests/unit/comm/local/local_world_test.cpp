#include <gtest/gtest.h>

#include <thread>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/communicator.hpp>

#include "comm/world.hpp"

namespace dtrain::comm {
namespace {

const ReductionShape kShape{.shards = 8, .size = 20'000, .rounded = 1000};

TEST(Single, AddsByTheTreeAndGivesItsOwnNote) {
  const auto single = make_single();
  const Reduced reduced = reduce(*single, kShape);
  EXPECT_TRUE(same_bits(reduced.sum, direct_tree(kShape)));
  EXPECT_EQ(reduced.notes, (std::vector<Note>{{{0, 7, 0, 1}}}));
}

TEST(Single, IsDeadAfterAbortAndAfterAReductionThatNobodyFinished) {
  const auto aborted = make_single();
  aborted->abort();
  EXPECT_THROW(aborted->all_gather({}), PeerLost);
  const auto abandoned = make_single();
  std::ignore = abandoned->begin_reduction(kShape, {});
  EXPECT_THROW(reduce(*abandoned, kShape), PeerLost);
}

TEST(LocalWorld, GivesEveryRankTheSameBitsForAnyNumberOfRanks) {
  const std::vector<float>& expected = direct_tree(kShape);
  for (int ranks : {1, 2, 3, 5, 11}) {
    const auto world = make_local_world(ranks);
    const auto thrown = run_ranks(world, [&](Communicator& comm) {
      for (int round = 0; round < 3; ++round) {
        const Reduced reduced = reduce(comm, kShape);
        EXPECT_TRUE(same_bits(reduced.sum, expected)) << ranks;
        EXPECT_EQ(reduced.notes.back().words[0], static_cast<std::uint64_t>(ranks - 1));
      }
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<std::size_t>(ranks)));
  }
}

TEST(LocalWorld, GathersByRankAndSendsInOrder) {
  const auto world = make_local_world(3);
  run_ranks(world, [&](Communicator& comm) {
    const std::string mine(static_cast<std::size_t>(comm.rank()), 'x');
    EXPECT_EQ(comm.all_gather(bytes_of(mine)), (std::vector<std::string>{"", "x", "xx"}));
    if (comm.rank() == 0) {
      comm.send(2, bytes_of("first"));
      comm.send(2, bytes_of("second"));
    } else if (comm.rank() == 2) {
      std::string text(11, ' ');
      comm.receive(0, std::as_writable_bytes(std::span(text).first(5)));
      comm.receive(0, std::as_writable_bytes(std::span(text).last(6)));
      EXPECT_EQ(text, "firstsecond");
    }
  });
}

TEST(LocalWorld, TurnsALeavingRankIntoPeerLost) {
  auto world = make_local_world(3);
  std::thread leaver([&] { world[2].reset(); });
  EXPECT_THROW(world[0]->all_gather({}), PeerLost);
  leaver.join();
  EXPECT_THROW(reduce(*world[1], kShape), PeerLost);
}

TEST(LocalWorld, TurnsASilentRankIntoPeerLost) {
  const auto world = make_local_world(2, std::chrono::milliseconds(20));
  EXPECT_THROW(reduce(*world[0], kShape), PeerLost);
  EXPECT_THROW(reduce(*world[1], kShape), PeerLost);
}

}  // namespace
}  // namespace dtrain::comm
