#include <dtrain/data/loader.hpp>

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

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
