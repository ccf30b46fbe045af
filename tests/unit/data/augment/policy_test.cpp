// Which operations a sample gets. What they do to pixels is judged by Pillow: tests/judge/picture_changes.py.
#include "augment/policy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include <dtrain/base/random.hpp>

namespace dtrain::data {
namespace {

constexpr nn::Shape kPolicyPicture{3, 20, 30};

Augment of(AutoAugment kind, int magnitude = 9) { return {.auto_augment = kind, .rand_augment_magnitude = magnitude}; }

// The largest amount, either way, that each operation gets over many samples.
std::map<Operation, double> largest(const Augment& options) {
  std::map<Operation, double> most;
  for (std::uint32_t sample = 0; sample < 20000; ++sample) {
    for (const Change& change : draw_policy(options, {1, 0, sample}, kPolicyPicture)) {
      double& value = most[change.operation];
      value = std::max(value, std::abs(change.amount));
    }
  }
  return most;
}

TEST(Policy, TrivialDrawsOneOperationOfAnyStrength) {
  EXPECT_EQ(draw_policy(of(AutoAugment::trivial), {1, 2, 3}, kPolicyPicture).size(), 1u);
  const auto most = largest(of(AutoAugment::trivial));
  EXPECT_EQ(most.size(), 14u);
  EXPECT_DOUBLE_EQ(most.at(Operation::shear_x), 0.99);
  EXPECT_DOUBLE_EQ(most.at(Operation::translate_y), 32);
  EXPECT_DOUBLE_EQ(most.at(Operation::rotate), 135);
  EXPECT_DOUBLE_EQ(most.at(Operation::sharpness), 0.99);
  EXPECT_DOUBLE_EQ(most.at(Operation::posterize), 8);
  EXPECT_DOUBLE_EQ(most.at(Operation::solarize), 255);
}

TEST(Policy, RandDrawsSomeOperationsOfOneStrength) {
  Augment options = of(AutoAugment::rand, kStrongestAugment);
  options.rand_augment_ops = 3;
  EXPECT_EQ(draw_policy(options, {1, 2, 3}, kPolicyPicture).size(), 3u);
  const auto most = largest(options);
  EXPECT_DOUBLE_EQ(most.at(Operation::shear_y), 0.3);
  EXPECT_DOUBLE_EQ(most.at(Operation::translate_x), std::trunc(150.0 / 331 * 30));
  EXPECT_DOUBLE_EQ(most.at(Operation::translate_y), std::trunc(150.0 / 331 * 20));
  EXPECT_DOUBLE_EQ(most.at(Operation::rotate), 30);
  EXPECT_DOUBLE_EQ(most.at(Operation::contrast), 0.9);
  EXPECT_DOUBLE_EQ(most.at(Operation::posterize), 4);
  EXPECT_DOUBLE_EQ(most.at(Operation::solarize), 0);
}

// torchvision's table for 31 strengths, at 9.
TEST(Policy, AMagnitudeOfNineIsThreeTenthsOfTheStrongest) {
  const auto most = largest(of(AutoAugment::rand));
  EXPECT_DOUBLE_EQ(most.at(Operation::shear_x), 0.09);
  EXPECT_DOUBLE_EQ(most.at(Operation::rotate), 9);
  EXPECT_DOUBLE_EQ(most.at(Operation::posterize), 7);
  EXPECT_DOUBLE_EQ(most.at(Operation::solarize), 178.5);
}

TEST(Policy, TheSameSampleInTheSameEpochGetsTheSameAndOthersDiffer) {
  const Augment options = of(AutoAugment::trivial);
  const auto drawn = [&](const SampleKey& key) {
    const Change change = draw_policy(options, key, kPolicyPicture).front();
    return std::pair(change.operation, change.amount);
  };
  int other_epoch = 0, other_sample = 0;
  for (std::uint32_t sample = 0; sample < 100; ++sample) {
    EXPECT_EQ(drawn({5, 1, sample}), drawn({5, 1, sample}));
    other_epoch += drawn({5, 1, sample}) != drawn({5, 2, sample});
    other_sample += drawn({5, 1, sample}) != drawn({5, 1, sample + 1});
  }
  EXPECT_GT(other_epoch, 80);
  EXPECT_GT(other_sample, 80);
}

Image noise() {
  RandomStream random(7, RandomUse::drawing, 0, 0);
  Image image{.c = 3, .h = 24, .w = 34, .pixels = std::vector<std::uint8_t>(3 * 24 * 34)};
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return image;
}

std::vector<float> augmented(const Augment& options, std::uint32_t sample) {
  std::vector<float> out(static_cast<std::size_t>(kPolicyPicture.size()));
  augment(noise(), options, {3, 0, sample}, kPolicyPicture, out);
  return out;
}

// Crop and mirror come first and are drawn as without a policy; then the operations; then the mean is taken off.
TEST(Policy, ChangesTheCroppedPictureBeforeItIsNormalised) {
  Augment plain{.random_crop = true, .random_mirror = true};
  Augment options = plain;
  options.auto_augment = AutoAugment::trivial;
  options.mean = {10, 20, 30};
  options.std = {2, 4, 8};
  int changed = 0;
  for (std::uint32_t sample = 0; sample < 50; ++sample) {
    std::vector<float> expected = augmented(plain, sample);
    const std::vector<float> before = expected;
    apply_policy(options, {3, 0, sample}, kPolicyPicture, expected.data());
    changed += before != expected;
    const std::vector<float> got = augmented(options, sample);
    const std::size_t plane = expected.size() / 3;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(got[i], (expected[i] - options.mean[i / plane]) / options.std[i / plane]) << sample << " " << i;
    }
  }
  EXPECT_GT(changed, 25);
}

// torchvision's table: of the third pair of equalize, the first half never comes; rotate has six levels of degrees.
TEST(Policy, ImageNetDrawsAPairWhoseHalvesComeByTheirProbabilities) {
  const Augment options = of(AutoAugment::imagenet);
  std::map<Operation, int> counts;
  std::map<std::size_t, int> lengths;
  std::map<Operation, std::set<double>> amounts;
  constexpr int kSamples = 50'000;
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    const auto changes = draw_policy(options, {1, 0, sample}, kPolicyPicture);
    ++lengths[changes.size()];
    for (const Change& change : changes) ++counts[change.operation], amounts[change.operation].insert(change.amount);
  }
  const auto expect_share = [](int count, double pairs) {
    const double expected = kSamples / 25.0 * pairs;
    EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
  };
  expect_share(counts[Operation::posterize], 0.4 + 0.6 + 0.6 + 0.8 + 0.4);
  expect_share(counts[Operation::invert], 0.6 * 3);
  expect_share(counts[Operation::shear_x], 0.6);
  expect_share(counts[Operation::contrast], 2);
  EXPECT_EQ(counts.count(Operation::translate_x), 0u);
  EXPECT_GT(lengths[0], 0);
  EXPECT_EQ(lengths.rbegin()->first, 2u);
  EXPECT_EQ(amounts[Operation::rotate],
            (std::set<double>{-30, 30, -30 * (8 / 9.0), 30 * (8 / 9.0), -30 * (3 / 9.0), 30 * (3 / 9.0)}));
  EXPECT_EQ(amounts[Operation::posterize], (std::set<double>{8 - 4, 8 - 3, 8 - 2}));
}

TEST(Policy, JitterOfColorsComesInEveryOrderAndWithinItsRange) {
  const Augment options{.brightness = 0.4f, .contrast = 0.2f, .saturation = 0.7f};
  std::set<std::vector<Operation>> orders;
  std::map<Operation, double> least, most;
  for (std::uint32_t sample = 0; sample < 2000; ++sample) {
    std::vector<Operation> order;
    for (const Change& change : draw_policy(options, {1, 0, sample}, kPolicyPicture)) {
      order.push_back(change.operation);
      least[change.operation] = std::min(least[change.operation], change.amount);
      most[change.operation] = std::max(most[change.operation], change.amount);
    }
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 6u);
  const auto expect_range = [&](Operation operation, double range) {
    EXPECT_NEAR(least[operation], -range, 0.01 * range);
    EXPECT_NEAR(most[operation], range, 0.01 * range);
    EXPECT_LE(std::max(most[operation], -least[operation]), range + 1e-7);
  };
  expect_range(Operation::brightness, 0.4);
  expect_range(Operation::contrast, 0.2);
  expect_range(Operation::color, 0.7);
  EXPECT_EQ(draw_policy({.contrast = 0.2f}, {1, 0, 3}, kPolicyPicture).size(), 1u);
}

TEST(Policy, JitterOfColorsLeavesTheOperationsAsTheyWereDrawn) {
  Augment options = of(AutoAugment::rand);
  const auto plain = draw_policy(options, {1, 2, 3}, kPolicyPicture);
  options.saturation = 0.5f;
  const auto both = draw_policy(options, {1, 2, 3}, kPolicyPicture);
  ASSERT_EQ(both.size(), 3u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(both[i + 1].operation, plain[i].operation);
    EXPECT_EQ(both[i + 1].amount, plain[i].amount);
  }
}

}  // namespace
}  // namespace dtrain::data
