#include "train/detection/paste_mask.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace dtrain::train {
namespace {

constexpr int kSide = 4;

std::vector<float> varied() {
  std::vector<float> likely;
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column)
      likely.push_back(static_cast<float>((7 * row + 5 * column + 3 * row * column) % 11) / 10);
  }
  return likely;
}

std::vector<std::string> rows_of(const std::vector<float>& likely, const nn::Box& box, int h, int w) {
  const data::Rle mask = paste_mask(likely, kSide, box, h, w);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(h * w));
  data::decode_mask(mask, pixels);
  EXPECT_EQ(mask, data::encode_mask(pixels, h, w));  // its runs are as short as they can be
  std::vector<std::string> rows(static_cast<std::size_t>(h));
  for (std::size_t i = 0; i < pixels.size(); ++i) rows[i / static_cast<std::size_t>(w)] += pixels[i] != 0 ? '#' : '.';
  return rows;
}

using Rows = std::vector<std::string>;
const std::vector<float> kFull(std::size_t{kSide} * kSide, 1.0f);

// The rows are those of torchvision 0.15's paste_masks_in_image(), above 0.5; tests/judge/paste_masks.py asks it
// itself.
TEST(PasteMask, FillsTheBoxAsTorchvisionDoes) {
  EXPECT_EQ(rows_of(varied(), {2.5f, 1.25f, 9.75f, 6.5f}, 8, 12),
            (Rows{"............", "......##....", ".....####...", "...#....##..", "............", "..##....#...",
                  "............", "............"}));
  EXPECT_EQ(rows_of(kFull, {2, 1, 6, 4}, 5, 8), (Rows{"........", "..#####.", "..#####.", "..#####.", "........"}));
}

TEST(PasteMask, LeavesOutWhatLiesOutsideOfThePicture) {
  EXPECT_EQ(rows_of(varied(), {-3, -2, 5.5f, 20}, 10, 7),
            (Rows{".###...", "####...", ".####..", ".####..", "...##..", "...###.", "....##.", "....##.", "....#..",
                  "....#.."}));
  EXPECT_EQ(rows_of(kFull, {4.5f, 3, 9, 10}, 5, 6), (Rows{"......", "......", "......", "....##", "....##"}));
  EXPECT_EQ(rows_of(kFull, {10, 10, 12, 12}, 2, 3), (Rows{"...", "..."}));
}

TEST(PasteMask, OfABoxWithinAPixelIsThatPixel) {
  EXPECT_EQ(rows_of(kFull, {3.2f, 2.1f, 3.4f, 2.3f}, 5, 6), (Rows{"......", "......", "...#..", "......", "......"}));
}

TEST(PasteMask, OfABoxOfNoNumbersEnds) {
  const float none = std::numeric_limits<float>::quiet_NaN(), endless = std::numeric_limits<float>::infinity();
  EXPECT_EQ(rows_of(kFull, {none, none, none, none}, 2, 2), (Rows{"..", ".."}));
  EXPECT_EQ(rows_of(kFull, {-endless, 0, endless, 1}, 1, 1).size(), 1u);
}

}  // namespace
}  // namespace dtrain::train
