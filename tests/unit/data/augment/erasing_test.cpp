// Random erasing and noise along the directions of ImageNet's colours.
#include "augment/erasing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "augment/pca_noise.hpp"

namespace dtrain::data {
namespace {

constexpr nn::Shape kErasedPicture{3, 40, 30};
constexpr float kUntouched = 100;

Augment with(float probability, ErasingMode mode = ErasingMode::pixel) {
  return {.random_erasing = probability, .erasing_mode = mode};
}

ErasedBox box_of(std::uint32_t sample, float probability = 1, const nn::Shape& shape = kErasedPicture) {
  RandomStream random = SampleKey{3, 1, sample}.stream(RandomUse::erasing);
  return draw_erasing(with(probability), shape, random);
}

TEST(RandomErasing, TakesABoxOfTimmsSizesWithinThePicture) {
  double least = 1, most = 0, tallest = 0, widest = 0;
  for (std::uint32_t sample = 0; sample < 20'000; ++sample) {
    const ErasedBox box = box_of(sample);
    ASSERT_GT(box.h * box.w, 0);
    ASSERT_TRUE(box.top >= 0 && box.left >= 0 && box.top + box.h <= 40 && box.left + box.w <= 30);
    const double area = box.h * box.w / 1200.0, aspect = static_cast<double>(box.h) / box.w;
    least = std::min(least, area), most = std::max(most, area);
    tallest = std::max(tallest, aspect), widest = std::max(widest, 1 / aspect);
  }
  EXPECT_NEAR(least, 0.02, 0.006);
  EXPECT_NEAR(most, 1.0 / 3, 0.02);
  EXPECT_NEAR(tallest, 1 / 0.3, 0.7);
  EXPECT_NEAR(widest, 1 / 0.3, 0.7);
}

TEST(RandomErasing, ComesAsOftenAsItIsAskedFor) {
  int erased = 0;
  for (std::uint32_t sample = 0; sample < 10'000; ++sample) erased += box_of(sample, 0.25f).h > 0;
  EXPECT_NEAR(erased, 2500, 5 * std::sqrt(2500 * 0.75));
  EXPECT_EQ(box_of(1, 0).h, 0);
  EXPECT_EQ(box_of(1, 1, {3, 1, 1}).h, 0) << "no box is smaller than one pixel";
}

std::vector<float> erased(const Augment& options, const SampleKey& key) {
  std::vector<float> picture(static_cast<std::size_t>(kErasedPicture.size()), kUntouched);
  erase(options, key, kErasedPicture, picture.data());
  return picture;
}

TEST(RandomErasing, ChangesTheBoxOfAllChannelsAndNothingElse) {
  for (std::uint32_t sample = 0; sample < 50; ++sample) {
    const ErasedBox box = box_of(sample);
    const std::vector<float> picture = erased(with(1), {3, 1, sample});
    for (std::size_t i = 0; i < picture.size(); ++i) {
      const int y = static_cast<int>(i / 30 % 40), x = static_cast<int>(i % 30);
      const bool inside = y >= box.top && y < box.top + box.h && x >= box.left && x < box.left + box.w;
      ASSERT_EQ(picture[i] != kUntouched, inside) << sample << " " << i;
    }
  }
}

TEST(RandomErasing, FillsWithNoiseOneColourOrTheMean) {
  const auto inside = [](ErasingMode mode) {
    std::vector<float> values;
    for (std::uint32_t sample = 0; sample < 200; ++sample) {
      for (const float value : erased(with(1, mode), {3, 1, sample})) {
        if (value != kUntouched) values.push_back(value);
      }
    }
    return values;
  };
  const std::vector<float> noise = inside(ErasingMode::pixel);
  double sum = 0, squares = 0;
  for (const double value : noise) sum += value, squares += value * value;
  EXPECT_NEAR(sum / static_cast<double>(noise.size()), 0, 0.02);
  EXPECT_NEAR(squares / static_cast<double>(noise.size()), 1, 0.02);
  for (const float value : inside(ErasingMode::zero)) ASSERT_EQ(value, 0);
  std::vector<float> colours = inside(ErasingMode::rand);
  std::ranges::sort(colours);
  EXPECT_LE(std::unique(colours.begin(), colours.end()) - colours.begin(), 600) << "one for each channel";
}

TEST(RandomErasing, IsAFunctionOfTheKey) {
  EXPECT_EQ(erased(with(1), {3, 1, 7}), erased(with(1), {3, 1, 7}));
  EXPECT_NE(erased(with(1), {3, 1, 7}), erased(with(1), {3, 2, 7}));
  EXPECT_NE(erased(with(1), {3, 1, 7}), erased(with(1), {3, 1, 7, 1}));
}

TEST(RandomErasing, ComesLastInTheNormalisedPicture) {
  Image image{3, 40, 30, std::vector<std::uint8_t>(3600, 200)};
  Augment options = with(1, ErasingMode::zero);
  options.mean = {10, 20, 30};
  std::vector<float> out(3600), expected(3600);
  augment(image, options, {3, 1, 7}, kErasedPicture, out);
  options.random_erasing = 0;
  augment(image, options, {3, 1, 7}, kErasedPicture, expected);
  erase(with(1, ErasingMode::zero), {3, 1, 7}, kErasedPicture, expected.data());
  EXPECT_EQ(out, expected);
  EXPECT_TRUE(std::ranges::count(out, 0.0f) > 0);
}

// Alphas of deviation 0.1 along three directions of these lengths.
TEST(PcaNoise, MovesColoursAsImageNetsVary) {
  const Augment options{.pca_noise = 0.1f};
  double squares[3] = {};
  constexpr int kSamples = 20'000;
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    const auto shift = draw_pca_shift(options, {1, 0, sample});
    for (std::size_t c = 0; c < 3; ++c) squares[c] += double{shift[c]} * double{shift[c]};
  }
  const double expected[] = {std::hypot(5.546 * 0.5675, 0.4794 * 0.7192, 0.1148 * 0.4009),
                             std::hypot(5.546 * 0.5808, 0.4794 * 0.0045, 0.1148 * 0.8140),
                             std::hypot(5.546 * 0.5836, 0.4794 * 0.6948, 0.1148 * 0.4203)};
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(std::sqrt(squares[c] / kSamples), expected[c], 0.02 * expected[c]) << c;
}

TEST(PcaNoise, RoundsAndStaysWithinBytes) {
  const Augment options{.pca_noise = 3};
  std::vector<float> picture(static_cast<std::size_t>(kErasedPicture.size()), 250);
  const auto shift = draw_pca_shift(options, {1, 0, 4});
  add_pca_noise(options, {1, 0, 4}, kErasedPicture, picture.data());
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(picture[c * 1200], std::nearbyint(std::clamp(250.0 + double{shift[c]}, 0.0, 255.0)));
    EXPECT_EQ(picture[c * 1200], picture[c * 1200 + 1199]);
  }
  std::vector<float> grey(1200, 7);
  add_pca_noise(options, {1, 0, 4}, {1, 40, 30}, grey.data());
  EXPECT_EQ(grey, std::vector<float>(1200, 7)) << "grey pictures have no colours to move";
}

}  // namespace
}  // namespace dtrain::data
