#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "tcp_world.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> nothing(int ranks) { return std::vector<std::string>(static_cast<std::size_t>(ranks)); }

TEST(Tcp, GivesTheBitsOfTheTreeForAnyNumberOfRanks) {
  for (int shards : {8, 16}) {
    const ReductionShape shape{.shards = shards, .size = 20'007};
    const std::vector<float>& expected = direct_tree(shape);
    for (int ranks = 1; ranks <= 8; ++ranks) {
      TcpWorld world(ranks, {.by_unix_sockets = ranks % 2 == 0});  // either way
      const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
        for (int round = 0; round < 3; ++round) {
          const Reduced reduced = reduce(comm, shape);
          EXPECT_TRUE(same_bits(reduced.sum, expected)) << ranks << " ranks, rank " << comm.rank();
          for (int rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(reduced.notes[static_cast<std::size_t>(rank)].words[0], static_cast<std::uint64_t>(rank));
          }
        }
      });
      EXPECT_EQ(thrown, nothing(ranks));
    }
  }
}

// Addresses of one machine stand for hosts; their ranks halve and double.
TEST(Tcp, GivesTheBitsOfTheTreeToRanksThatShareHosts) {
  const std::string first = "127.0.0.1", second = "127.0.0.2", third = "127.0.0.3";
  const std::vector<std::vector<std::string>> worlds{
      {first, first, second, second}, {first, second, second, second, third}, {first, second, first, third, second}};
  for (const std::vector<std::string>& addresses : worlds) {
    TcpWorld world(addresses);
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      for (const std::int64_t size : {20'007, 700'001}) {
        const ReductionShape shape{.shards = 8, .size = size, .rounded = 9'001};
        EXPECT_TRUE(same_bits(reduce(comm, shape).sum, direct_tree(shape))) << "rank " << comm.rank();
      }
    });
    EXPECT_EQ(thrown, nothing(static_cast<int>(addresses.size())));
  }
}

TEST(Tcp, LetsARankThatPassesSumsOnLeaveRightAfterItsLastReduction) {
  for (int round = 0; round < 15; ++round) {
    TcpWorld world({"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"});
    std::vector<std::thread> threads;
    for (auto& comm : world.communicators) {
      threads.emplace_back([&] {
        EXPECT_NO_THROW(reduce(*comm, {.shards = 4, .size = 50'000}));
        comm.reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Tcp, SumsManyBucketsOverAnyChunks) {
  const ReductionShape shape{.shards = 4, .size = 1'090'001, .rounded = 300'000};
  for (const bool near : {false, true}) {
    for (const int ranks : {2, 3, 7}) {  // some of seven have no leaves, and add what others hold
      TcpWorld world(ranks, {.by_unix_sockets = near});
      const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
        for (int round = 0; round < 2; ++round) {
          Reduced reduced = reduce(comm, shape);
          EXPECT_TRUE(same_bits(reduced.sum, direct_tree(shape))) << ranks << " ranks, near: " << near;
          comm.recycle(std::move(reduced.sum));
        }
      });
      EXPECT_EQ(thrown, nothing(ranks));
    }
  }
}

TEST(Tcp, SumsBySeveralConnections) {
  const ReductionShape shape{.shards = 4, .size = 1'090'001, .rounded = 300'000};
  for (const int ranks : {2, 3, 5}) {
    for (const bool plain : {false, true}) {
      TcpWorld world(ranks, {.plain_data = plain, .by_unix_sockets = false, .connections = 3});
      std::vector<std::thread> threads;
      for (auto& comm : world.communicators) {
        threads.emplace_back([&] {
          for (int round = 0; round < 3; ++round) {
            Reduced reduced = reduce(*comm, shape);
            EXPECT_TRUE(same_bits(reduced.sum, direct_tree(shape))) << ranks << " ranks";
            comm->recycle(std::move(reduced.sum));
          }
          comm.reset();  // while others still read
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
}

// One of two shares no memory: what it sends is copied by the kernel, what it gets is lent.
TEST(Tcp, LendsOnlyWhereMemoryIsShared) {
  const ReductionShape shape{.shards = 4, .size = 300'000};
  TcpWorld world(0);
  for (const bool shares : {true, false}) {
    world.endpoints.push_back(
        std::make_unique<Endpoint>(EndpointOptions{.secret = "token", .by_shared_memory = shares}));
    world.plan.ranks.push_back(world.endpoints.back()->address());
  }
  const auto communicators = world.connect(1);
  const auto thrown = run_ranks(
      communicators, [&](Communicator& comm) { EXPECT_TRUE(same_bits(reduce(comm, shape).sum, direct_tree(shape))); });
  EXPECT_EQ(thrown, nothing(2));
}

TEST(Tcp, RoundsToTheSameBitsForAnyNumberOfRanks) {
  const ReductionShape shape{.shards = 8, .size = 20'000, .rounded = 19'996};
  const std::vector<float>& expected = direct_tree(shape);
  for (int ranks : {1, 2, 3, 5, 8}) {
    TcpWorld world(ranks);
    const auto thrown = run_ranks(
        world.communicators, [&](Communicator& comm) { EXPECT_TRUE(same_bits(reduce(comm, shape).sum, expected)); });
    EXPECT_EQ(thrown, nothing(ranks));
  }
}

TEST(Tcp, ReducesAnyShapeOneAfterAnother) {
  for (int ranks : {2, 5}) {
    TcpWorld world(ranks);
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      for (std::int64_t size : {0, 1, 3, 17, 262'145, 5}) {
        for (int shards : {1, 2, 8}) {
          const ReductionShape shape{.shards = shards, .size = size, .rounded = size / 2};
          Reduced reduced = reduce(comm, shape, 1);
          EXPECT_TRUE(same_bits(reduced.sum, direct_tree(shape))) << size << " floats, " << shards << " shards";
          comm.recycle(std::move(reduced.sum));
        }
      }
    });
    EXPECT_EQ(thrown, nothing(ranks));
  }
}

TEST(Tcp, GathersByRankAndSendsInOrder) {
  TcpWorld world(3);
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    const std::string mine(static_cast<std::size_t>(comm.rank()), 'x');
    EXPECT_EQ(comm.all_gather(bytes_of(mine)), (std::vector<std::string>{"", "x", "xx"}));
    std::string large(3'000'000, 'a');
    if (comm.rank() == 0) {
      comm.send(2, bytes_of(large));
      comm.send(2, bytes_of("second"));
    } else if (comm.rank() == 2) {
      std::string text(large.size() + 6, ' ');
      comm.receive(0, std::as_writable_bytes(std::span(text).first(large.size())));
      comm.receive(0, std::as_writable_bytes(std::span(text).last(6)));
      EXPECT_EQ(text, large + "second");
    }
    EXPECT_EQ(comm.all_gather({}).size(), 3u);
  });
  EXPECT_EQ(thrown, nothing(3));
}

// The chunks of the reduction after a message take other connections than the message.
TEST(Tcp, KeepsChunksThatOvertakeAMessageUntilItIsRead) {
  const ReductionShape shape{.shards = 2, .size = 1 << 20};
  for (const int connections : {2, 4}) {
    TcpWorld world(2, {.plain_data = true, .by_unix_sockets = false, .connections = connections});
    const std::string message(512 << 10, 'm');
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      std::string got(message.size(), ' ');
      if (comm.rank() == 0) {
        comm.send(1, bytes_of(message));
      } else {
        std::this_thread::sleep_for(300ms);  // until the chunks are there
        comm.receive(0, std::as_writable_bytes(std::span(got)));
        EXPECT_EQ(got, message);
      }
      EXPECT_TRUE(same_bits(reduce(comm, shape).sum, direct_tree(shape)));
    });
    EXPECT_EQ(thrown, nothing(2));
  }
}

TEST(Tcp, NamesADeadPeerToAllOthersAtOnce) {
  TcpWorld world(3);
  const auto begin = std::chrono::steady_clock::now();
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    if (comm.rank() == 1) return comm.abort();
    reduce(comm, {.shards = 8, .size = 1000});
  });
  EXPECT_NE(thrown[0].find("rank 1 at 127.0.0.1"), std::string::npos) << thrown[0];
  EXPECT_NE(thrown[2].find("rank 1 at 127.0.0.1"), std::string::npos) << thrown[2];
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_THROW(world.communicators[0]->all_gather({}), PeerLost);
}

TEST(Tcp, NamesASilentPeerAtTheDeadline) {
  TcpWorld world(3, {.operation_deadline = 1s});
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    if (comm.rank() == 2) return;
    reduce(comm, {.shards = 8, .size = 1000});
  });
  EXPECT_NE(thrown[0].find("rank 2 at"), std::string::npos) << thrown[0];
  EXPECT_NE(thrown[1].find("rank 2 at"), std::string::npos) << thrown[1];
}

TEST(Tcp, EndsACallThatWaitsWhenAborted) {
  TcpWorld world(2);
  std::jthread aborter([&] {
    std::this_thread::sleep_for(30ms);
    world.communicators[0]->abort();
  });
  EXPECT_THROW(world.communicators[0]->all_gather({}), PeerLost);
  EXPECT_THROW(reduce(*world.communicators[1], {.shards = 2, .size = 10}), PeerLost);
}

TEST(Tcp, IsDeadAfterAReductionThatNobodyFinished) {
  TcpWorld world(2);
  world.communicators[0]->begin_reduction({.shards = 2, .size = 1000}, {});
  EXPECT_THROW(world.communicators[0]->all_gather({}), PeerLost);
  EXPECT_THROW(reduce(*world.communicators[1], {.shards = 2, .size = 1000}), PeerLost);
}

TEST(Tcp, LetsARankLeaveRightAfterItsLastReduction) {
  for (int round = 0; round < 15; ++round) {
    TcpWorld world(4);
    const ReductionShape shape{.shards = 4, .size = 50'000};
    std::vector<std::thread> threads;
    for (auto& comm : world.communicators) {
      threads.emplace_back([&] {
        EXPECT_NO_THROW(reduce(*comm, shape));
        comm.reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Tcp, RefusesOtherShapesAndOtherOperations) {
  TcpWorld shapes(2);
  const auto thrown = run_ranks(shapes.communicators,
                                [&](Communicator& comm) { reduce(comm, {.shards = 4, .size = 10 + comm.rank()}); });
  EXPECT_NE((thrown[0] + thrown[1]).find("reduces"), std::string::npos) << thrown[0];
  TcpWorld operations(2);
  const auto mixed = run_ranks(operations.communicators, [&](Communicator& comm) {
    if (comm.rank() == 0) {
      comm.all_gather({});
    } else {
      reduce(comm, {.shards = 4, .size = 10});
    }
  });
  EXPECT_FALSE(mixed[0].empty());
  EXPECT_FALSE(mixed[1].empty());
}

TEST(Tcp, CountsTheBytesBetweenRanksOverAllGenerations) {
  TcpWorld world(2);
  const std::string large(1'000'000, 'a');
  const auto give = [&](Communicator& comm) {
    std::string got(large.size(), ' ');
    if (comm.rank() == 0) comm.send(1, bytes_of(large));
    if (comm.rank() == 1) comm.receive(0, std::as_writable_bytes(std::span(got)));
    comm.all_gather({});
  };
  EXPECT_EQ(run_ranks(world.communicators, give), nothing(2));
  const Traffic first = *world.endpoints[0]->traffic(), second = *world.endpoints[1]->traffic();
  EXPECT_GE(first.sent, large.size());
  EXPECT_LT(first.sent, large.size() + 10'000);
  EXPECT_LT(first.received, 10'000u);
  EXPECT_GE(second.received, large.size());
  auto next = world.connect(2);
  EXPECT_EQ(run_ranks(next, give), nothing(2));
  EXPECT_GE(world.endpoints[0]->traffic()->sent, 2 * large.size());
  EXPECT_EQ(Endpoint({.transport = Transport::gloo}).traffic(), std::nullopt) << "the library moves them";
}

}  // namespace
}  // namespace dtrain::comm
