// A rank ends at any point of a reduction: every other rank gets the right sum or PeerLost, and nobody hangs.
#include <gtest/gtest.h>

#include <atomic>

#include <dtrain/base/error.hpp>

#include "tcp_world.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

const ReductionShape kShape{.shards = 8, .size = 5000, .rounded = 1000};
// Its pieces and sums are lent between ranks of one host.
const ReductionShape kLarge{.shards = 4, .size = 60'000, .rounded = 1000};

// Counts the points that one rank reaches, and ends it at one of them.
struct Fuse {
  std::atomic<int> left{-1};  // points until the end; negative: never
  std::atomic<int> reached{0};
  std::function<void(CommPoint)> hook() {
    return [this](CommPoint) {
      ++reached;
      if (left >= 0 && left-- == 0) throw Error("the fuse burnt");
    };
  }
};

// Endpoints by address, ranks of equal ones on one host; the last rank has the fuse.
struct FusedWorld {
  FusedWorld(const std::vector<std::string>& addresses, bool near, int connections, Fuse& fuse) {
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      EndpointOptions options{
          .bind_address = addresses[rank], .secret = "token", .by_unix_sockets = near, .connections = connections};
      if (rank + 1 == addresses.size()) options.on_point = fuse.hook();
      world.endpoints.push_back(std::make_unique<Endpoint>(options));
      world.plan.ranks.push_back(world.endpoints.back()->address());
    }
  }
  TcpWorld world{0};
};

struct CrashCase {
  std::vector<std::string> addresses;
  ReductionShape shape;
  bool near = true;  // by Unix sockets
  int connections = 1;
};

class Crash : public testing::TestWithParam<CrashCase> {};

TEST_P(Crash, AtAnyPointOfAReductionLeavesOthersWithTheSumOrPeerLost) {
  const auto& [addresses, shape, near, connections] = GetParam();
  const std::size_t ranks = addresses.size();
  Fuse fuse;
  FusedWorld fused(addresses, near, connections, fuse);
  {
    const auto communicators = fused.world.connect(1);
    run_ranks(communicators, [&, &shape = shape](Communicator& comm) { reduce(comm, shape); });
  }
  const int points = fuse.reached;
  ASSERT_GT(points, 20);
  int with_sum = 0, lost = 0;
  for (int point = 0; point < points; ++point) {
    fuse.left = point;
    const auto communicators = fused.world.connect(static_cast<std::uint64_t>(point) + 2);
    std::vector<FloatBuffer> sums(ranks);
    const auto thrown = run_ranks(communicators, [&, &shape = shape](Communicator& comm) {
      sums[static_cast<std::size_t>(comm.rank())] = reduce(comm, shape).sum;
    });
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(thrown[rank].empty(), same_bits(sums[rank], direct_tree(shape))) << "point " << point;
      (thrown[rank].empty() ? with_sum : lost) += 1;
    }
  }
  EXPECT_GT(lost, 0);
  RecordProperty("points", points);
  RecordProperty("with_sum", with_sum);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Crash,
                         testing::Values(CrashCase{std::vector<std::string>(3, "127.0.0.1"), kShape},
                                         CrashCase{{"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"}, kShape},
                                         CrashCase{std::vector<std::string>(3, "127.0.0.1"), kLarge},
                                         CrashCase{std::vector<std::string>(3, "127.0.0.1"), kLarge, false, 3}));

TEST(StuckThread, IsPeerLostAtTheDeadline) {
  std::atomic<bool> stuck{true};
  EndpointOptions options{.secret = "token", .operation_deadline = std::chrono::seconds(1)};
  TcpWorld world(2, options);
  options.on_point = [&](CommPoint) { stuck.wait(true); };
  world.endpoints.push_back(std::make_unique<Endpoint>(options));
  world.plan.ranks.push_back(world.endpoints.back()->address());
  const auto communicators = world.connect(2);
  std::atomic<int> lost{0};
  const auto thrown = run_ranks(communicators, [&](Communicator& comm) {
    try {
      reduce(comm, kShape);
    } catch (const PeerLost&) {
      if (++lost == 2) stuck = false, stuck.notify_all();
      throw;
    }
  });
  for (const std::string& reason : thrown) EXPECT_NE(reason, "");
  EXPECT_NE((thrown[0] + thrown[1]).find("from rank 2 at"), std::string::npos) << thrown[0];
}

}  // namespace
}  // namespace dtrain::comm
