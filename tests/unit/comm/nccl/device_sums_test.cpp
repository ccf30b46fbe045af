// How much of a GPU's memory reductions by NCCL take, against what is planned for them before a job begins.
#include "nccl/device_sums.hpp"

#include <gtest/gtest.h>

#include <dtrain/comm/mesh.hpp>

#include "comm/host_accelerator.hpp"

namespace dtrain::comm::nccl {
namespace {

TEST(NcclDeviceSums, TakeNoMoreThanIsPlannedAndNotMuchLess) {
  constexpr std::int64_t kSize = 9000;
  for (const bool any_order : {false, true}) {
    for (const int shards : {1, 2, 8, 32}) {
      for (const int ranks : {1, 2, 3, 5, 8, 9}) {  // some have no leaf
        std::uint64_t most = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          HostAccelerator device(false);
          const DeviceSums sums(device, {.shards = shards, .size = kSize}, {{0, kSize}}, rank, ranks, any_order);
          most = std::max(most, device.allocated());
        }
        const auto kept = static_cast<std::uint64_t>(contributions_kept_for_nccl(shards, ranks, any_order));
        const auto row = static_cast<std::uint64_t>(kSize) * sizeof(float);
        constexpr std::uint64_t kRest = 3000;  // chunks are not equal to the float
        EXPECT_LE(most, kept * row + kRest) << shards << " shards, " << ranks << " ranks";
        EXPECT_GT(most + row + kRest, kept * row) << shards << " shards, " << ranks << " ranks";
      }
    }
  }
}

// Of one shard each: the leaf, the sum, and what the others have of its half.
TEST(NcclDeviceSums, OfTwoRanksKeepThreeContributions) {
  EXPECT_EQ(contributions_kept_for_nccl(2, 2, false), 3);
  EXPECT_EQ(contributions_kept_for_nccl(2, 2, true), 2);
  EXPECT_EQ(contributions_kept_for_nccl(8, 2, false), 5);
}

}  // namespace
}  // namespace dtrain::comm::nccl
