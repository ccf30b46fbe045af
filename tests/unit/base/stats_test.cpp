#include <dtrain/base/stats.hpp>

#include <gtest/gtest.h>

namespace dtrain {
namespace {

TEST(Stats, TheMedianIsOneOfTheValues) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({4, 1, 3, 2}), 3) << "the larger of the two middle ones";
}

TEST(Stats, TheInterpolatedMedianLiesBetweenTheMiddleTwo) {
  EXPECT_EQ(interpolated_median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(interpolated_median({5, 1, 3}), 3);
}

TEST(Stats, TheMedianWithoutAValueIsThatOfTheOthers) {
  std::vector<double> ascending{1};
  for (const double next : {1.0, 2.0, 5.0, 5.0, 9.0, 12.0}) {
    ascending.push_back(next);
    for (std::size_t i = 0; i < ascending.size(); ++i) {
      std::vector<double> others = ascending;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(interpolated_median_without(ascending, i), interpolated_median(others)) << i << " of " << others.size();
    }
  }
}

TEST(Stats, AQuantileIsTheValueOfTheNearestRank) {
  const std::vector<double> values{0, 10, 20, 30, 40};
  EXPECT_EQ(quantile(values, 0), 0);
  EXPECT_EQ(quantile(values, 0.1), 0);
  EXPECT_EQ(quantile(values, 0.5), 20);
  EXPECT_EQ(quantile(values, 0.9), 40);
  EXPECT_EQ(quantile(values, 1), 40);
}

}  // namespace
}  // namespace dtrain
