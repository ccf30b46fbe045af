#include <dtrain/backend/dropout.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/random.hpp>

namespace dtrain::backend {
namespace {

std::vector<std::uint8_t> mask(const StepKey& key, int node, std::uint32_t sample, float p, std::size_t size = 64) {
  std::vector<std::uint8_t> keep(size);
  dropout_mask(key, node, sample, p, keep);
  return keep;
}

constexpr StepKey kKey{.seed = 0x1234567890abcdefu, .epoch = 5};

TEST(DropoutMask, IsTheStatedWordOfPhilox) {
  const PhiloxCounter words = philox({9 / 4, 3, 77, 5}, {0x90abcdefu, 0x12345678u ^ 3u});
  EXPECT_EQ(mask(kKey, 3, 77, 0.5f)[9], words[9 % 4] >= 0x80000000u ? 1 : 0);
}

TEST(DropoutMask, DependsOnSeedEpochSampleAndNode) {
  const auto first = mask(kKey, 3, 77, 0.5f);
  EXPECT_EQ(mask(kKey, 3, 77, 0.5f), first);
  EXPECT_NE(mask({kKey.seed + 1, 5}, 3, 77, 0.5f), first);
  EXPECT_NE(mask({kKey.seed + (std::uint64_t{1} << 40), 5}, 3, 77, 0.5f), first);
  EXPECT_NE(mask({kKey.seed, 6}, 3, 77, 0.5f), first);
  EXPECT_NE(mask(kKey, 4, 77, 0.5f), first);
  EXPECT_NE(mask(kKey, 3, 78, 0.5f), first);
}

TEST(DropoutMask, KeepsAllWithoutDropout) { EXPECT_EQ(mask(kKey, 0, 0, 0.0f), std::vector<std::uint8_t>(64, 1)); }

}  // namespace
}  // namespace dtrain::backend
