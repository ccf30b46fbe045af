#include "packing.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include <dtrain/base/random.hpp>

#include "tcp_world.hpp"
#include "world.hpp"

namespace dtrain::comm {
namespace {

std::vector<float> counts(std::int64_t size, int level) {
  RandomStream random(3, RandomUse::drawing, static_cast<std::uint32_t>(level), 0);
  std::vector<float> values;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(static_cast<float>(random.below((2u << level) + 1)) - static_cast<float>(1u << level));
  }
  return values;
}

// Every `every`-th float is not 0, and among them are the awkward ones.
std::vector<float> sparse(std::int64_t size, std::int64_t every) {
  constexpr float kAwkward[] = {1e-45f, -1e-45f, std::numeric_limits<float>::infinity(), -3.5f};
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::int64_t i = every - 1; i < size; i += every) {
    values[static_cast<std::size_t>(i)] = (i / every) % 2 == 0 ? kAwkward[i / every / 2 % 4] : awkward(1, i);
  }
  return values;
}

std::vector<float> unpacked(Packing packing, int level, std::span<const std::byte> bytes, std::size_t size) {
  std::vector<float> values(size, 7.0f);
  EXPECT_TRUE(unpack(packing, level, bytes, values.data(), static_cast<std::int64_t>(size)));
  return values;
}

TEST(Packing, CountsTravelInLevelPlusTwoBits) {
  for (const int level : {0, 1, 2, 3, 6, 7, 12, 20}) {
    for (const std::int64_t size : {1, 3, 8, 1001}) {
      const std::vector<float> values = counts(size, level);
      const auto bytes = pack(Packing::counts, level, values.data(), size);
      EXPECT_EQ(std::ssize(bytes), (size * (level + 2) + 7) / 8);
      EXPECT_TRUE(same_bits(unpacked(Packing::counts, level, bytes, values.size()), values)) << level << " " << size;
    }
  }
}

TEST(Packing, FewFloatsTravelWithAMask) {
  for (const std::int64_t size : {1, 63, 64, 65, 10'000}) {
    for (const std::int64_t every : {1, 2, 100, 20'000}) {
      const std::vector<float> values = sparse(size, every);
      const auto bytes = pack(Packing::sparse, 0, values.data(), size);
      EXPECT_TRUE(packed_sizes(Packing::sparse, 0, size).has(bytes.size()));
      EXPECT_TRUE(same_bits(unpacked(Packing::sparse, 0, bytes, values.size()), values)) << size << " " << every;
    }
  }
  const std::vector<float> few = sparse(100'000, 1000);
  EXPECT_LT(pack(Packing::sparse, 0, few.data(), std::ssize(few)).size(), 100 * (4 + 8) + 200u) << "for 100 floats";
}

// Whatever a peer sends: an answer, no access beyond the bytes or the floats (with asan), and no frame that pack() does
// not make.
TEST(Packing, RefusesBytesThatCannotBe) {
  const std::vector<float> values = sparse(200, 3);
  const auto good = pack(Packing::sparse, 0, values.data(), 200);
  std::vector<float> got(200);
  for (std::size_t i = 0; i < good.size() * 8; ++i) {
    auto bytes = good;
    bytes[i / 8] ^= std::byte{1} << (i % 8);
    if (!unpack(Packing::sparse, 0, bytes, got.data(), 200)) continue;
    EXPECT_EQ(pack(Packing::sparse, 0, got.data(), 200), bytes) << "bit " << i;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(unpack(Packing::sparse, 0, std::span(good).first(size), got.data(), 200)) << size;
  }
  const std::vector<std::byte> three{std::byte{3}}, beyond{std::byte{1 << 2 | 1}};
  EXPECT_FALSE(unpack(Packing::counts, 0, three, got.data(), 1)) << "of 0, 1 and 2";
  EXPECT_FALSE(unpack(Packing::counts, 0, beyond, got.data(), 1)) << "behind the last float";
  EXPECT_FALSE(unpack(Packing::counts, 0, good, got.data(), 1));
}

// Leaves of a step: the first `packed` floats as the packing wants them, the others as they come.
std::vector<float> leaf_of(const ReductionShape& shape, int shard) {
  std::vector<float> leaf(static_cast<std::size_t>(shape.size));
  for (std::int64_t i = 0; i < shape.size; ++i) {
    const float value = awkward(shard, i);
    const bool goes =
        philox({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(shard), 0, 0}, {1, 2})[0] % 50 == 0;
    const float first = shape.packing == Packing::counts ? (value < 0 ? -1.0f : 1.0f) : value;
    leaf[static_cast<std::size_t>(i)] = i >= shape.packed ? value : goes ? first : 0.0f;
  }
  return leaf;
}

FloatBuffer summed(Communicator& comm, const ReductionShape& shape) {
  const auto reduction = comm.begin_reduction(shape, {});
  const ShardSpan span = shards_of_rank(comm.rank(), comm.size(), shape.shards);
  for (int shard = span.first; shard < span.last; ++shard) {
    std::ranges::copy(leaf_of(shape, shard), reduction->leaf(shard).begin());
    reduction->ready(shard, 0, shape.size);
  }
  return reduction->finish().sum;
}

TEST(Packing, ChangesNoSumAndSendsFewerBytes) {
  for (const Packing packing : {Packing::counts, Packing::sparse}) {
    const ReductionShape shape{.shards = 8, .size = 300'100, .packed = 300'000, .packing = packing};
    ReductionShape plain = shape;
    plain.packed = 0;  // the leaves are those of `shape`
    FloatBuffer expected;
    {
      const auto alone = make_single();
      const auto reduction = alone->begin_reduction(plain, {});
      for (int shard = 0; shard < 8; ++shard) {
        std::ranges::copy(leaf_of(shape, shard), reduction->leaf(shard).begin());
        reduction->ready(shard, 0, shape.size);
      }
      expected = reduction->finish().sum;
    }
    for (const int ranks : {1, 2, 3, 4, 8, 9}) {
      TcpWorld world(ranks, {.by_unix_sockets = ranks % 2 == 0});
      const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
        for (int round = 0; round < 2; ++round) EXPECT_TRUE(same_bits(summed(comm, shape), expected)) << ranks;
      });
      EXPECT_EQ(thrown, std::vector<std::string>(static_cast<std::size_t>(ranks)));
      std::uint64_t sent = 0;
      for (const auto& endpoint : world.endpoints) sent += endpoint->traffic()->sent;
      const std::uint64_t floats = 2 * 300'000 * 2 * static_cast<std::uint64_t>(ranks - 1);  // there and back, twice
      if (ranks == 1 || ranks > 4) continue;
      EXPECT_LT(sent, floats * sizeof(float) / 4) << ranks << " ranks: less than a quarter of float32";
    }
  }
}

TEST(Packing, IsPartOfTheShapeThatRanksAgreeOn) {
  TcpWorld world(2);
  const auto thrown = run_ranks(world.communicators, [&](Communicator& comm) {
    summed(comm, {.shards = 2, .size = 100, .packed = comm.rank() == 0 ? 0 : 90, .packing = Packing::counts});
  });
  EXPECT_NE((thrown[0] + thrown[1]).find("0 packed"), std::string::npos) << thrown[0];
}

}  // namespace
}  // namespace dtrain::comm
