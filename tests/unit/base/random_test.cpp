#include <dtrain/base/random.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace dtrain {
namespace {

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Weights, orders and augmentations of every job come from these: a change here changes all of them.
TEST(RandomStream, ItsFirstNumbersNeverChange) {
  RandomStream stream(7, RandomUse::augment, 3, 5);
  const PhiloxCounter block = philox({0, 0, 3, 5}, {7, static_cast<std::uint32_t>(RandomUse::augment)});
  for (const std::uint32_t expected : block) EXPECT_EQ(stream.bits(), expected);
  EXPECT_EQ(stream.bits(), philox({1, 0, 3, 5}, {7, static_cast<std::uint32_t>(RandomUse::augment)})[0]);
}

TEST(RandomStream, DiffersBySeedUseAndBothNumbers) {
  const auto first = [](std::uint64_t seed, RandomUse use, std::uint32_t a, std::uint32_t b) {
    return RandomStream(seed, use, a, b).bits();
  };
  const std::uint32_t base = first(1, RandomUse::order, 2, 3);
  EXPECT_NE(base, first(2, RandomUse::order, 2, 3));
  EXPECT_NE(base, first(1ull << 32 | 1, RandomUse::order, 2, 3));
  EXPECT_NE(base, first(1, RandomUse::dropout, 2, 3));
  EXPECT_NE(base, first(1, RandomUse::order, 3, 3));
  EXPECT_NE(base, first(1, RandomUse::order, 2, 4));
}

TEST(RandomStream, BelowIsEvenlySpreadAndStaysBelow) {
  RandomStream stream(1, RandomUse::order, 0, 0);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) ++counts.at(stream.below(7));
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);  // four standard deviations
  EXPECT_EQ(stream.below(1), 0u);
}

TEST(RandomStream, UniformStaysInItsInterval) {
  RandomStream stream(1, RandomUse::augment, 0, 0);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const float value = stream.uniform(-2, 4);
    ASSERT_GE(value, -2);
    ASSERT_LT(value, 4);
    sum += static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 100000, 1.0, 0.02);
}

TEST(RandomStream, NormalHasTheMomentsOfANormalDistribution) {
  RandomStream stream(1, RandomUse::initial_weights, 0, 0);
  constexpr int count = 200000;
  std::array<double, 5> moments{};
  double product = 0, previous = 0;
  for (int i = 0; i < count; ++i) {
    const double value = static_cast<double>(stream.normal());
    for (int k = 1; k <= 4; ++k) moments[static_cast<std::size_t>(k)] += std::pow(value, k) / count;
    product += value * previous / count;
    previous = value;
  }
  EXPECT_NEAR(moments[1], 0, 0.01);
  EXPECT_NEAR(moments[2], 1, 0.015);
  EXPECT_NEAR(moments[3], 0, 0.04);
  EXPECT_NEAR(moments[4], 3, 0.1);
  EXPECT_NEAR(product, 0, 0.01);  // neighbours, also the two of one pair, are independent
}

}  // namespace
}  // namespace dtrain
