// tests/judge/coco_masks.py compares more of them with pycocotools.
#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/base/random.hpp>
#include <dtrain/data/rle.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

// Rows of letters; '.' is outside.
std::vector<std::uint8_t> pixels_of(std::string_view rows) {
  std::vector<std::uint8_t> pixels;
  for (const char c : rows) pixels.push_back(c != '.');
  return pixels;
}

Rle noise(std::uint32_t seed, int h, int w) {
  RandomStream random(seed, RandomUse::drawing, 0, 0);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(h * w));
  for (auto& pixel : pixels) pixel = random.below(3) == 0;
  return encode_mask(pixels, h, w);
}

TEST(Rle, CountsRunsDownTheColumns) {
  const Rle mask = encode_mask(pixels_of(".x."
                                         "xx."),
                               2, 3);
  EXPECT_EQ(mask.runs, (std::vector<std::uint32_t>{1, 3, 2}));
  EXPECT_EQ(encode_mask(pixels_of("x..."), 2, 2).runs, (std::vector<std::uint32_t>{0, 1, 3}));
  EXPECT_EQ(mask_area(mask), 3u);
  EXPECT_EQ(mask_box(mask), (PixelBox{0, 0, 2, 2}));
  std::vector<std::uint8_t> pixels(6);
  decode_mask(mask, pixels);
  EXPECT_EQ(pixels, pixels_of(".x.xx."));
}

TEST(Rle, TextsAreThoseOfCoco) {
  const Rle mask{4, 25, {6, 1, 40, 4, 5, 4, 5, 4, 21, 10}};
  EXPECT_EQ(text_of_runs({9, 10, {6, 1, 40, 4, 5, 4, 5, 4, 21}}), "61X13mN000`0");
  EXPECT_EQ(runs_of_text(text_of_runs(mask), 4, 25), mask);
  for (std::uint32_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(runs_of_text(text_of_runs(noise(seed, 31, 17)), 31, 17), noise(seed, 31, 17));
}

TEST(Rle, RefusesTextsThatAreNone) {
  expect_error([] { runs_of_text("61X13mN000`0", 4, 24); }, "cover 90 pixels, and its picture of 4x24 has 96");
  for (const char* text : {"6P", "a b", "ooooooooooo0", "6F"}) expect_error([&] { runs_of_text(text, 4, 25); }, "");
}

TEST(Rle, OverlapsAreSharesOfWhatEitherCovers) {
  const Rle a = encode_mask(pixels_of("xx.xx."), 2, 3), b = encode_mask(pixels_of(".xx.xx"), 2, 3);
  EXPECT_DOUBLE_EQ(mask_overlap(a, b, false), 2.0 / 6);
  EXPECT_DOUBLE_EQ(mask_overlap(a, b, true), 2.0 / 4);
  EXPECT_DOUBLE_EQ(box_overlap({0, 0, 2, 2}, {1, 0, 2, 2}, false), 2.0 / 6);
  EXPECT_DOUBLE_EQ(box_overlap({0, 0, 2, 2}, {1, 0, 2, 2}, true), 2.0 / 4);
  EXPECT_EQ(box_overlap({0, 0, 2, 2}, {2, 0, 2, 2}, false), 0);
}

TEST(Rle, UnitesMasks) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    const std::vector<Rle> masks{noise(seed, 9, 13), noise(seed + 100, 9, 13), noise(seed + 200, 9, 13)};
    std::vector<std::uint8_t> all(9 * 13), one(9 * 13);
    for (const Rle& mask : masks) {
      decode_mask(mask, one);
      std::ranges::transform(all, one, all.begin(), std::bit_or<>());
    }
    std::vector<std::uint8_t> found(9 * 13);
    decode_mask(united(masks), found);
    EXPECT_EQ(found, all);
    EXPECT_EQ(mask_area(united(masks)), static_cast<std::uint64_t>(std::ranges::count(all, 1)));
  }
}

TEST(Rle, APolygonCoversPixelsWhoseMiddlesItHolds) {
  const std::vector<double> square{1, 1, 3, 1, 3, 3, 1, 3};
  std::vector<std::uint8_t> pixels(16);
  decode_mask(mask_of_polygon(square, 4, 4), pixels);
  EXPECT_EQ(pixels, pixels_of("...."
                              ".xx."
                              ".xx."
                              "...."));
  // What lies outside of the picture is cut off.
  decode_mask(mask_of_polygon(std::vector<double>{-5, -5, 2, -5, 2, 20, -5, 20}, 4, 4), pixels);
  EXPECT_EQ(pixels, pixels_of("xx..xx..xx..xx.."));
  EXPECT_EQ(mask_area(mask_of_polygon(std::vector<double>{9, 9, 12, 9, 12, 12}, 4, 4)), 0u);
}

}  // namespace
}  // namespace dtrain::data
