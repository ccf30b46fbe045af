// Mixup and cutmix: what is drawn, and what becomes of the images.
#include <dtrain/data/mix.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace dtrain::data {
namespace {

constexpr nn::Shape kImage{2, 6, 10};
constexpr std::uint32_t kDraws = 20000;

std::vector<MixDraw> draws(const MixOptions& options, const nn::Shape& image = kImage) {
  std::vector<MixDraw> all;
  for (std::uint32_t position = 0; position < kDraws; ++position)
    all.push_back(draw_mix(options, {5, 1, position}, image));
  return all;
}

// Mean 1/2 and variance 1 / (8 alpha + 4), as of Beta(alpha, alpha); tiny alphas leave nearly all to one of two.
TEST(Mix, DrawsSharesFromBeta) {
  for (const float alpha : {0.02f, 0.2f, 1.0f, 8.0f, 100.0f}) {
    double sum = 0, squares = 0;
    for (const MixDraw& draw : draws({.mixup = alpha})) {
      ASSERT_TRUE(draw.share >= 0 && draw.share <= 1) << draw.share;
      EXPECT_FALSE(draw.cuts);
      sum += draw.share;
      squares += (draw.share - 0.5) * (draw.share - 0.5);
    }
    const double variance = 1 / (8.0 * alpha + 4);
    EXPECT_NEAR(sum / kDraws, 0.5, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws, variance, 0.05 * variance) << alpha;
  }
}

TEST(Mix, ACoinDecidesBetweenTheTwo) {
  int cuts = 0;
  for (const MixDraw& draw : draws({.mixup = 0.8f, .cutmix = 1})) cuts += draw.cuts;
  EXPECT_NEAR(cuts, kDraws / 2, 5 * std::sqrt(kDraws) / 2);
  for (const MixDraw& draw : draws({.cutmix = 1})) ASSERT_TRUE(draw.cuts);
}

// A box that is cut off at the edges leaves the labels what the pixels show.
TEST(Mix, TheShareIsThatOfThePixelsOutsideTheBox) {
  const nn::Shape image{3, 32, 48};
  double sum = 0;
  for (const MixDraw& draw : draws({.cutmix = 1}, image)) {
    ASSERT_TRUE(draw.top >= 0 && draw.left >= 0 && draw.bottom <= image.h && draw.right <= image.w);
    const double inside = static_cast<double>(draw.bottom - draw.top) * (draw.right - draw.left);
    ASSERT_NEAR(draw.share, 1 - inside / (32 * 48), 1e-6);
    sum += draw.share;
  }
  EXPECT_NEAR(sum / kDraws, 0.66, 0.04);  // half of the area, less what is cut off
}

TEST(Mix, IsAFunctionOfItsKey) {
  const MixOptions options{.mixup = 1, .cutmix = 1};
  const float share = draw_mix(options, {5, 1, 7}, kImage).share;
  EXPECT_EQ(draw_mix(options, {5, 1, 7}, kImage).share, share);
  EXPECT_NE(draw_mix(options, {6, 1, 7}, kImage).share, share);
  EXPECT_NE(draw_mix(options, {5, 2, 7}, kImage).share, share);
  EXPECT_NE(draw_mix(options, {5, 1, 8}, kImage).share, share);
}

std::vector<float> counted(int n) {
  std::vector<float> images(static_cast<std::size_t>(n * kImage.size()));
  std::iota(images.begin(), images.end(), 1.0f);
  return images;
}

// The middle one of an odd number has no other.
TEST(Mix, BlendsEachImageWithTheOneFromTheOtherEnd) {
  const std::vector<float> before = counted(5);
  std::vector<float> after = before;
  mix_images({.share = 0.75f}, kImage, 5, after.data());
  const auto size = static_cast<std::size_t>(kImage.size());
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t k = 0; k < size; ++k) {
      const float own = before[i * size + k], other = before[(4 - i) * size + k];
      ASSERT_EQ(after[i * size + k], 0.75f * own + 0.25f * other) << i;
    }
  }
}

TEST(Mix, PutsTheBoxOfOneImageIntoTheOther) {
  const std::vector<float> before = counted(2);
  std::vector<float> after = before;
  mix_images({.share = 0.8f, .cuts = true, .top = 1, .left = 2, .bottom = 4, .right = 6}, kImage, 2, after.data());
  const auto size = static_cast<std::size_t>(kImage.size());
  for (std::size_t k = 0; k < size; ++k) {
    const std::size_t y = k / 10 % 6, x = k % 10;
    const bool inside = y >= 1 && y < 4 && x >= 2 && x < 6;
    ASSERT_EQ(after[k], before[inside ? k + size : k]);
    ASSERT_EQ(after[k + size], before[inside ? k : k + size]);
  }
}

}  // namespace
}  // namespace dtrain::data
