// Reductions by NCCL over its stand-in (tests/helpers/nccl_standin.cpp): decisions, order, deadlines; no GPU.
#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/error.hpp>

#include "host_accelerator.hpp"
#include "nccl/api.hpp"
#include "nccl/nccl_communicator.hpp"
#include "tcp_world.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

using namespace std::chrono_literals;

// Each endpoint has a device of its own, as each worker has.
struct NcclWorld {
  explicit NcclWorld(int ranks, bool has_stream = true, bool any_order = false, std::chrono::seconds deadline = 30s)
      : world(0) {
    for (int rank = 0; rank < ranks; ++rank) {
      EndpointOptions options{.secret = "the token of this job", .transport = Transport::nccl};
      options.operation_deadline = deadline;
      devices.push_back(std::make_shared<HostAccelerator>(has_stream));
      options.nccl = {DTRAIN_NCCL_STANDIN, devices.back(), any_order};
      world.endpoints.push_back(std::make_unique<Endpoint>(options));
      world.plan.ranks.push_back(world.endpoints.back()->address());
    }
    communicators = world.connect(1);
  }
  Accelerator& device(const Communicator& comm) { return *devices[static_cast<std::size_t>(comm.rank())]; }
  std::vector<std::shared_ptr<Accelerator>> devices;
  TcpWorld world;
  std::vector<std::unique_ptr<Communicator>> communicators;
};

// The last floats first, as gradients become final.
std::vector<FloatRange> parts_from_behind(const ReductionShape& shape) {
  return {{shape.rounded, shape.size - shape.rounded},
          {shape.rounded / 3, shape.rounded - shape.rounded / 3},
          {0, shape.rounded / 3}};
}

std::vector<std::string> nothing_from(int ranks) { return std::vector<std::string>(static_cast<std::size_t>(ranks)); }

TEST(Nccl, GivesTheBitsOfTheTreeForAnyNumberOfRanks) {
  const ReductionShape shape{.shards = 8, .size = 300'007, .rounded = 1001};
  for (int ranks : {1, 2, 3, 5, 8}) {
    NcclWorld world(ranks, ranks % 2 == 0);
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      for (int round = 0; round < 3; ++round) {
        Reduced reduced = reduce(comm, shape);
        EXPECT_TRUE(same_bits(reduced.sum, direct_tree(shape))) << ranks << " ranks, rank " << comm.rank();
        EXPECT_EQ(reduced.notes.back().words[0], static_cast<std::uint64_t>(ranks - 1));
        comm.recycle(std::move(reduced.sum));
      }
    });
    EXPECT_EQ(thrown, nothing_from(ranks));
  }
}

TEST(Nccl, AddsUpPartByPartWhatLiesOnTheDevices) {
  const ReductionShape shape{.shards = 8, .size = 30'007, .rounded = 10'001};
  for (int ranks : {2, 3, 5, 8, 9}) {  // of nine, one has no leaf
    NcclWorld world(ranks, ranks % 2 == 0);
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      for (int round = 0; round < 3; ++round) {
        const Reduced reduced = reduce_on_device(comm, world.device(comm), shape, parts_from_behind(shape));
        EXPECT_TRUE(same_bits(reduced.sum, direct_tree(shape))) << ranks << " ranks, rank " << comm.rank();
        EXPECT_EQ(reduced.notes.back().words[0], static_cast<std::uint64_t>(ranks - 1));
      }
    });
    EXPECT_EQ(thrown, nothing_from(ranks));
  }
}

// Every rank gets the same bits, and they are the sum up to rounding.
TEST(Nccl, AddsUpInAnyOrderWhereThatIsAllowed) {
  const ReductionShape shape{.shards = 8, .size = 20'003, .rounded = 3000};
  for (int ranks : {2, 3, 9}) {  // of nine, one has no leaf
    NcclWorld world(ranks, true, true);
    std::vector<FloatBuffer> sums(static_cast<std::size_t>(ranks));
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      sums[static_cast<std::size_t>(comm.rank())] =
          reduce_on_device(comm, world.device(comm), shape, parts_from_behind(shape)).sum;
    });
    EXPECT_EQ(thrown, nothing_from(ranks));
    const std::vector<float>& right = direct_tree(shape);
    for (const FloatBuffer& sum : sums) EXPECT_TRUE(same_bits(sum, sums[0]));
    EXPECT_EQ(same_bits(sums[0], right), ranks == 2) << "of three, another order gives other bits";
    for (std::size_t i = 0; i < right.size(); ++i) {
      const float tolerance = static_cast<std::int64_t>(i) < shape.rounded ? 0.03f : 1e-5f;
      ASSERT_NEAR(sums[0][i], right[i], tolerance * std::abs(right[i])) << i;
    }
  }
}

TEST(Nccl, TurnsARankThatDiesBetweenPartsIntoPeerLost) {
  NcclWorld world(3, true, false, 1s);
  const ReductionShape shape{.shards = 8, .size = 3000, .rounded = 0};
  const std::vector<FloatRange> parts = {{1000, 2000}, {0, 1000}};
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    reduce_on_device(comm, world.device(comm), shape, parts);
    if (comm.rank() != 1) return static_cast<void>(reduce_on_device(comm, world.device(comm), shape, parts));
    static const std::vector<float> leaf(3000);  // the device may read it after the reduction is dead
    const auto reduction = comm.begin_device_reduction(shape, parts, {});
    const ShardSpan span = shards_of_rank(1, 3, 8);
    for (int shard = span.first; shard < span.last; ++shard) reduction->take(shard, 0, leaf.data(), {});
    comm.abort();
  });
  EXPECT_NE(thrown[0], "");
  EXPECT_NE(thrown[2], "");
}

// The computation may stand behind a transfer to the lost rank, which only the end of NCCL frees.
TEST(Nccl, WaitsForItsOwnLeavesNoLongerThanForPeers) {
  NcclWorld world(2, true, false, 1s);
  const ReductionShape shape{.shards = 2, .size = 1000, .rounded = 0};
  const std::vector<FloatRange> parts = {{0, 1000}};
  static const std::vector<float> leaf(1000);
  static std::atomic<bool> computed[2];
  computed[0] = false, computed[1] = true;
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    const auto reduction = comm.begin_device_reduction(shape, parts, {});
    reduction->take(comm.rank(), 0, leaf.data(), {&computed[comm.rank()]});
    reduction->exchange();
    reduction->wait_for_leaves();
    EXPECT_EQ(comm.rank(), 1);
    reduction->finish();
  });
  EXPECT_NE(thrown[0], "");
}

// A GPU gets the work of all shards at once, so the marks of the last one come after all of them. The other rank waits
// as long for what is added up there.
TEST(Nccl, WaitsForEachOfTheOwnShardsAsLongAsForOne) {
  NcclWorld world(2, true, false, 1s);
  const ReductionShape shape{.shards = 8, .size = 1000, .rounded = 0};
  static const std::vector<float> leaf(1000);
  static std::atomic<bool> computed[2];
  computed[0] = computed[1] = false;
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    std::atomic<bool>& mine = computed[comm.rank()];
    const auto reduction = comm.begin_device_reduction(shape, {{0, 1000}}, {});
    const ShardSpan span = shape.span_of(comm.rank(), 2);
    for (int shard = span.first; shard < span.last; ++shard) reduction->take(shard, 0, leaf.data(), {&mine});
    const std::jthread gpu([&] {
      std::this_thread::sleep_for(1500ms);
      mine = true;
    });
    reduction->exchange();
    reduction->wait_for_leaves();
    reduction->finish();
  });
  EXPECT_EQ(thrown, nothing_from(2));
}

// Not less than NCCL may need to begin, and more where the user allows more.
TEST(Nccl, HasItsOwnTimeForTheMeeting) {
  EXPECT_EQ(nccl::meeting_time(10s, 30s), 60s);
  EXPECT_EQ(nccl::meeting_time(10s, 300s), 300s);
  EXPECT_EQ(nccl::meeting_time(90s, 30s), 90s);
}

TEST(Nccl, ReducesAnyShapeOneAfterAnother) {
  NcclWorld world(3);
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
  EXPECT_EQ(thrown, nothing_from(3));
}

// Counts the gatherings of one rank.
class CountedMesh final : public HostCommunicator {
 public:
  CountedMesh(std::unique_ptr<Communicator> inner, int& gatherings)
      : inner_(std::move(inner)), gatherings_(gatherings) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Reduction> begin_reduction(const ReductionShape& shape, const Note& note) override {
    return inner_->begin_reduction(shape, note);
  }
  void recycle(FloatBuffer sum) override { inner_->recycle(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override {
    ++gatherings_;
    return inner_->all_gather(mine);
  }
  void send(int to, ByteView bytes) override { inner_->send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) override { inner_->receive(from, bytes); }
  void abort() noexcept override { inner_->abort(); }

 private:
  const std::unique_ptr<Communicator> inner_;
  int& gatherings_;
};

TEST(Nccl, GathersOnceAStepBeforeTheExchangeAndNotBehindIt) {
  const ReductionShape shape{.shards = 4, .size = 1000};
  int gatherings[2] = {};
  std::vector<std::unique_ptr<Communicator>> ranks;
  std::vector<std::shared_ptr<HostAccelerator>> devices;
  for (auto& mesh : make_local_world(2)) {
    devices.push_back(std::make_shared<HostAccelerator>());
    auto& count = gatherings[mesh->rank()];
    ranks.push_back(make_nccl_communicator(std::make_unique<CountedMesh>(std::move(mesh), count),
                                           {DTRAIN_NCCL_STANDIN, devices.back(), false}, 30s, 30s));
  }
  const auto thrown = run_ranks(ranks, [&](Communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    for (int step = 0; step < 5; ++step) {
      const int before = gatherings[rank], meeting = step == 0 ? 1 : 0;  // the first step also begins NCCL
      EXPECT_TRUE(same_bits(reduce_on_device(comm, *devices[rank], shape, {{0, 1000}}).sum, direct_tree(shape)));
      EXPECT_EQ(gatherings[rank] - before, 1 + meeting) << step;
    }
    comm.all_gather({});
  });
  EXPECT_EQ(thrown, nothing_from(2));
}

TEST(Nccl, GathersAndSendsByTheMesh) {
  NcclWorld world(2);
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    EXPECT_EQ(comm.all_gather(bytes_of("x")), (std::vector<std::string>{"x", "x"}));
    std::string text(3, ' ');
    if (comm.rank() == 0) comm.send(1, bytes_of("abc"));
    if (comm.rank() == 1) {
      comm.receive(0, std::as_writable_bytes(std::span(text)));
      EXPECT_EQ(text, "abc");
    }
    reduce(comm, {.shards = 4, .size = 100});
  });
  EXPECT_EQ(thrown, nothing_from(2));
}

TEST(Nccl, MakesTheNextGenerationOfTheSameRanks) {
  NcclWorld world(2);
  const ReductionShape shape{.shards = 4, .size = 1000};
  for (std::uint64_t generation = 2; generation < 5; ++generation) {
    const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
      EXPECT_TRUE(same_bits(reduce(comm, shape).sum, direct_tree(shape)));
    });
    EXPECT_EQ(thrown, nothing_from(2));
    world.communicators = world.world.connect(generation);
  }
}

TEST(Nccl, TurnsADeadPeerIntoPeerLost) {
  NcclWorld world(3);
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    if (comm.rank() == 1) return comm.abort();
    reduce(comm, {.shards = 8, .size = 1000});
  });
  EXPECT_NE(thrown[0], "");
  EXPECT_NE(thrown[2], "");
  EXPECT_THROW(world.communicators[0]->all_gather({}), PeerLost);
  EXPECT_THROW(reduce(*world.communicators[0], {.shards = 8, .size = 1000}), PeerLost);
}

TEST(Nccl, EndsAReductionThatWaitsWhenAborted) {
  NcclWorld world(2);
  const ReductionShape shape{.shards = 2, .size = 1000};
  std::jthread aborter([&] {
    std::this_thread::sleep_for(30ms);
    world.communicators[0]->abort();
  });
  EXPECT_THROW(reduce(*world.communicators[0], shape), PeerLost);
  EXPECT_THROW(reduce(*world.communicators[1], shape), PeerLost);
}

TEST(Nccl, RefusesAnotherShapeBeforeNcclSeesIt) {
  NcclWorld world(2);
  const auto thrown = run_ranks(world.communicators,
                                [&](Communicator& comm) { reduce(comm, {.shards = 2, .size = 1000 + comm.rank()}); });
  EXPECT_NE((thrown[0] + thrown[1]).find("reduces"), std::string::npos) << thrown[0];
}

TEST(Nccl, IsDeadAfterAReductionThatNobodyFinished) {
  NcclWorld world(2);
  world.communicators[0]->begin_reduction({.shards = 2, .size = 1000}, {});
  EXPECT_THROW(world.communicators[0]->all_gather({}), PeerLost);
  EXPECT_THROW(reduce(*world.communicators[1], {.shards = 2, .size = 1000}), PeerLost);
}

TEST(Nccl, LetsARankLeaveOnceAllHaveEndedTheLastReduction) {
  for (int round = 0; round < 5; ++round) {
    NcclWorld world(3);
    std::vector<std::jthread> threads;
    for (auto& comm : world.communicators) {
      threads.emplace_back([&] {
        EXPECT_NO_THROW(reduce(*comm, {.shards = 4, .size = 50'000}));
        EXPECT_NO_THROW(comm->all_gather({}));
        comm.reset();
      });
    }
  }
}

TEST(Nccl, FindsAllThatItUsesInTheRealLibrary) {
  std::optional<nccl::Api> real;
  try {
    real = nccl::load("libnccl.so.2");
  } catch (const UsageError& error) {
    if (std::string(error.what()).starts_with("NCCL cannot be loaded")) GTEST_SKIP() << error.what();
    throw;
  }
  int version = 0;
  EXPECT_EQ(real->get_version(&version), nccl::Result::success);
  EXPECT_GE(version, 21800);
  EXPECT_NE(std::string(real->error_text(nccl::Result::in_progress)), "");
}

TEST(Nccl, SaysWhatIsWrongWithALibrary) {
  EXPECT_THROW(nccl::load("/nowhere/libnccl.so.2"), UsageError);
  try {
    nccl::load("libc.so.6");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()), "libc.so.6 has no ncclGetVersion: it is not NCCL 2.18 or newer");
  }
}

}  // namespace
}  // namespace dtrain::comm
