#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/all_reduce_baseline.hpp>

#include "tcp_world.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

using namespace std::chrono_literals;

const EndpointOptions kGloo{.transport = Transport::gloo};

TEST(Gloo, GivesTheBitsOfTheTreeForAnyNumberOfRanks) {
  for (int ranks : {1, 2, 3, 4, 6}) {
    TcpWorld world(ranks, kGloo);
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      for (const std::int64_t size : {300'007, 1'090'003}) {  // both ways
        const ReductionShape shape{.shards = 8, .size = size, .rounded = 1000};
        Reduced reduced = reduce(comm, shape);
        EXPECT_TRUE(same_bits(reduced.sum, direct_tree(shape))) << ranks << " ranks";
        EXPECT_EQ(reduced.notes.back().words[0], static_cast<std::uint64_t>(ranks - 1));
        comm.recycle(std::move(reduced.sum));
      }
    });
    EXPECT_EQ(thrown, std::vector<std::string>(static_cast<std::size_t>(ranks)));
  }
}

TEST(Gloo, TurnsADeadPeerIntoPeerLost) {
  TcpWorld world(3, kGloo);
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    if (comm.rank() == 1) return comm.abort();
    reduce(comm, {.shards = 8, .size = 1000});
  });
  EXPECT_NE(thrown[0], "");
  EXPECT_NE(thrown[2], "");
}

TEST(Gloo, TurnsASilentPeerIntoPeerLostAtTheDeadline) {
  TcpWorld world(2, {.transport = Transport::gloo, .operation_deadline = 300ms});
  EXPECT_THROW(reduce(*world.communicators[0], {.shards = 2, .size = 1000}), PeerLost);
}

TEST(Gloo, RefusesAnotherShapeBeforeGlooSeesIt) {
  TcpWorld world(2, kGloo);
  const auto thrown = run_ranks(world.communicators,
                                [&](Communicator& comm) { reduce(comm, {.shards = 2, .size = 1000 + comm.rank()}); });
  EXPECT_NE((thrown[0] + thrown[1]).find("reduces"), std::string::npos) << thrown[0];
}

TEST(Gloo, LetsARankLeaveRightAfterItsLastReduction) {
  for (int round = 0; round < 5; ++round) {
    TcpWorld world(3, kGloo);
    std::vector<std::jthread> threads;
    for (auto& comm : world.communicators) {
      threads.emplace_back([&] {
        EXPECT_NO_THROW(reduce(*comm, {.shards = 4, .size = 50'000}));
        comm.reset();
      });
    }
  }
}

TEST(Gloo, SumsAsABaselineByEveryAlgorithmThatIsOffered) {
  TcpWorld world(3);
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    std::vector<float> values(1003);
    const auto baseline = make_gloo_baseline(comm, "127.0.0.1", values);
    for (const std::string& algorithm : gloo_algorithms()) {
      values.assign(values.size(), static_cast<float>(comm.rank()));
      baseline->all_reduce(algorithm);
      EXPECT_EQ(values, std::vector<float>(values.size(), 3.0f)) << algorithm;
    }
    comm.all_gather({});
  });
  EXPECT_EQ(thrown, std::vector<std::string>(3));
}

}  // namespace
}  // namespace dtrain::comm
