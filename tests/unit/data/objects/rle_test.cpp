// tests/judge/coco_masks.py compares more of them with pycocotools.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

// Walks every point of the outline, as maskApi does.
std::vector<std::uint32_t> ends_of_walk(const std::vector<double>& corners, int h, int w) {
  std::vector<std::pair<int, int>> points;
  const auto on_grid = [](double value) { return static_cast<int>(5 * value + 0.5); };
  const std::size_t count = corners.size() / 2;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t next = (i + 1) % count;
    int x0 = on_grid(corners[2 * i]), y0 = on_grid(corners[2 * i + 1]);
    int x1 = on_grid(corners[2 * next]), y1 = on_grid(corners[2 * next + 1]);
    const int dx = std::abs(x1 - x0), dy = std::abs(y1 - y0), length = std::max(dx, dy);
    const bool flipped = dx >= dy ? x0 > x1 : y0 > y1;
    if (flipped) {
      std::swap(x0, x1);
      std::swap(y0, y1);
    }
    const double slope = length == 0 ? 0 : static_cast<double>(dx >= dy ? y1 - y0 : x1 - x0) / length;
    for (int step = 0; step <= length; ++step) {
      const int t = flipped ? length - step : step;
      if (dx >= dy) points.emplace_back(t + x0, static_cast<int>(y0 + slope * t + 0.5));
      if (dx < dy) points.emplace_back(static_cast<int>(x0 + slope * t + 0.5), t + y0);
    }
  }
  std::vector<std::uint32_t> ends;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const auto [x0, y0] = points[i - 1];
    const auto [x1, y1] = points[i];
    const double x = ((x1 < x0 ? x1 : x1 - 1) + 0.5) / 5 - 0.5, y = (std::min(y0, y1) + 0.5) / 5 - 0.5;
    if (x0 == x1 || std::floor(x) != x || x < 0 || x > w - 1) continue;
    const int row = static_cast<int>(std::ceil(std::clamp(y, 0.0, static_cast<double>(h))));
    ends.push_back(static_cast<std::uint32_t>(static_cast<int>(x) * h + row));
  }
  std::ranges::sort(ends);
  return ends;
}

// Pixels that an odd number of ends stands before are inside.
std::vector<std::uint8_t> pixels_between(const std::vector<std::uint32_t>& ends, int h, int w) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < h; ++y) {
    for (int x = 0; x < w; ++x)
      pixels.push_back((std::ranges::upper_bound(ends, static_cast<std::uint32_t>(x * h + y)) - ends.begin()) % 2 == 1);
  }
  return pixels;
}

TEST(Rle, APolygonIsThatOfAWalkAlongItsWholeOutline) {
  constexpr int kHeight = 19, kWidth = 23;
  RandomStream random(7, RandomUse::drawing, 0, 0);
  std::vector<std::uint8_t> pixels(kHeight * kWidth);
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t farthest = i % 3 == 0 ? 60 : i % 3 == 1 ? 400 : 4000;
    std::vector<double> corners;
    for (int k = 0; k < 2 * (3 + i % 5); ++k)
      corners.push_back((static_cast<double>(random.below(10 * farthest)) - 5.0 * farthest) / 10 + 10);
    decode_mask(mask_of_polygon(corners, kHeight, kWidth), pixels);
    ASSERT_EQ(pixels, pixels_between(ends_of_walk(corners, kHeight, kWidth), kHeight, kWidth)) << i;
  }
}

TEST(Rle, CornersFarOutsideTakeNoLongerThanNearOnes) {
  std::vector<double> corners;
  for (int i = 0; i < 100'000; ++i) corners.insert(corners.end(), {i % 2 ? 3.0 : -1e6, i % 4 < 2 ? 1e6 : -1e6});
  EXPECT_EQ(mask_of_polygon(corners, 4, 4).h, 4);
  // A thin triangle from far above to far below, that covers the second column.
  std::vector<std::uint8_t> pixels(16);
  decode_mask(mask_of_polygon(std::vector<double>{1, -1e6, 2, -1e6, 2, 1e6, 1, 1e6}, 4, 4), pixels);
  EXPECT_EQ(pixels, pixels_of(".x...x...x...x.."));
}

}  // namespace
}  // namespace dtrain::data
