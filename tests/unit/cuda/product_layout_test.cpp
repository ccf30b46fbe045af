// What a product's values lie in: descriptors and accumulators.
#include "gpu/native/product_layout.hpp"

#include <gtest/gtest.h>

#include <set>

namespace dtrain::backend::cuda {
namespace {

// PTX ISA, "wgmma.mma_async.m64nNk16", register fragment of D.
TEST(CudaProduct, KnowsWhereAccumulatorsAre) {
  std::set<std::pair<std::int32_t, std::int32_t>> places;
  for (std::int32_t thread = 0; thread < 128; ++thread) {
    for (std::int32_t k = 0; k < 128; ++k) {
      const AccumulatorPlace at = accumulator_at(thread, k);
      // CUTLASS's CLayout_64x256: thread (4, 8, 4) : (128, 1, 16), value (2, 2, 32) : (64, 8, 512), column-major.
      const std::int32_t place =
          thread % 4 * 128 + thread / 4 % 8 + thread / 32 * 16 + k % 2 * 64 + k / 2 % 2 * 8 + k / 4 * 512;
      EXPECT_EQ(at.row, place % 64);
      EXPECT_EQ(at.column, place / 64);
      places.insert({at.row, at.column});
    }
  }
  EXPECT_EQ(places.size(), 64u * 256u);
}

TEST(CudaProduct, DescribesOperandsAsPtxDoes) {
  // K-major: address, leading offset unused, 1,024 bytes between groups of eight rows, 128-byte swizzle.
  EXPECT_EQ(operand_descriptor(Major::k, 0x400, 0, 0), 0x4000'0040'0001'0040u);
  EXPECT_EQ(operand_descriptor(Major::k, 0x400, 64, 1), 0x4000'0040'0001'0242u);
  // MN-major: 8,192 bytes between 64 values, 1,024 between groups of eight k.
  EXPECT_EQ(operand_descriptor(Major::mn, 0x400, 0, 0), 0x4000'0040'0200'0040u);
  EXPECT_EQ(operand_descriptor(Major::mn, 0x400, 64, 1), 0x4000'0040'0200'02c0u);
}

// A warp's 32 words of one accumulator lie in 32 different banks.
TEST(CudaProduct, LeavesResultsWithoutConflictsOfBanks) {
  for (std::int32_t warp = 0; warp < 4; ++warp) {
    for (std::int32_t k = 0; k < 64; k += 2) {
      std::set<std::uint32_t> banks;
      for (std::int32_t lane = 0; lane < 32; ++lane) {
        const AccumulatorPlace at = accumulator_at(warp * 32 + lane, k);
        banks.insert(result_place(at.row, at.column) / 4 % 32);
      }
      EXPECT_EQ(banks.size(), 32u);
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
