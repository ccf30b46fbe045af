#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <dtrain/data/loader.hpp>

namespace dtrain::data {
namespace {

TEST(Sampling, AnEpochsOrderHoldsEveryPositionOnce) {
  auto order = epoch_order(1, 0, 1000);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(order[i], i);
  EXPECT_TRUE(epoch_order(1, 0, 0).empty());
  EXPECT_EQ(epoch_order(1, 0, 1), std::vector<std::uint32_t>{0});
}

TEST(Sampling, TheOrderIsAFunctionOfSeedAndEpoch) {
  EXPECT_EQ(epoch_order(1, 2, 100), epoch_order(1, 2, 100));
  EXPECT_NE(epoch_order(1, 2, 100), epoch_order(1, 3, 100));
  EXPECT_NE(epoch_order(1, 2, 100), epoch_order(2, 2, 100));
}

TEST(Sampling, AnOrderByBlocksHoldsEveryPositionOnceAndFewBlocksAtATime) {
  constexpr std::uint32_t kCount = 10'007, kBlock = 50;
  auto order = epoch_order(1, 0, kCount, kBlock);
  for (std::uint32_t first = 0; first < kCount; first += 16 * kBlock) {
    std::set<std::uint32_t> blocks;
    for (std::uint32_t i = first; i < std::min(kCount, first + 16 * kBlock); ++i) blocks.insert(order[i] / kBlock);
    EXPECT_LE(blocks.size(), 18u);  // the last block of the file is shorter than the others
  }
  std::sort(order.begin(), order.end());
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(order[i], i);
}

// How much the classes of a batch vary, in units of what chance gives: 1 is a perfect mix. `sorted`: the file holds one
// class after the other, otherwise they lie in it at random.
double spread_of_classes(std::uint32_t block, bool sorted) {
  constexpr std::uint32_t kCount = 51'200, kClasses = 10, kBatch = 128;
  const auto places = epoch_order(77, 0, kCount), order = epoch_order(1, 0, kCount, block);
  double sum = 0;
  for (std::uint32_t first = 0; first < kCount; first += kBatch) {
    std::array<double, kClasses> seen{};
    for (std::uint32_t i = first; i < first + kBatch; ++i) {
      const std::uint32_t place = sorted ? order[i] : places[order[i]];
      ++seen[place / (kCount / kClasses)];
    }
    constexpr double kExpected = double{kBatch} / kClasses;
    for (const double count : seen) sum += (count - kExpected) * (count - kExpected) / kExpected;
  }
  return sum / (kClasses - 1) / (kCount / kBatch);
}

TEST(Sampling, MixesClassesAsChanceDoesUnlessBlocksMeetASortedFile) {
  EXPECT_NEAR(spread_of_classes(0, true), 1.0, 0.1);
  EXPECT_NEAR(spread_of_classes(0, false), 1.0, 0.1);
  EXPECT_NEAR(spread_of_classes(512, false), 1.0, 0.1);
  EXPECT_GT(spread_of_classes(512, true), 4.0);
  for (const std::uint32_t block : {0u, 128u, 512u, 2048u}) {
    RecordProperty("sorted_by_" + std::to_string(block), std::to_string(spread_of_classes(block, true)));
    RecordProperty("random_by_" + std::to_string(block), std::to_string(spread_of_classes(block, false)));
  }
}

TEST(Sampling, AllOrdersComeUpEquallyOften) {
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint32_t epoch = 0; epoch < 24 * 200; ++epoch) ++seen[epoch_order(9, epoch, 4)];
  EXPECT_EQ(seen.size(), 24u);
  double chi_squared = 0;
  for (const auto& [order, count] : seen) chi_squared += (count - 200.0) * (count - 200.0) / 200.0;
  EXPECT_LT(chi_squared, 49.7);  // 23 degrees of freedom: exceeded once in a thousand seeds
}

}  // namespace
}  // namespace dtrain::data
