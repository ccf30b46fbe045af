#include <array>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include "augment/color.hpp"
#include "augment_reference.hpp"

namespace dtrain::data {
namespace {

std::array<int, 3> shifted(int r, int g, int b, const HslShift& shift) {
  float planes[3] = {static_cast<float>(r), static_cast<float>(g), static_cast<float>(b)};
  shift_hsl(&planes[0], &planes[1], &planes[2], 1, shift);
  return {static_cast<int>(planes[0]), static_cast<int>(planes[1]), static_cast<int>(planes[2])};
}

TEST(Color, EveryColourOfADenseGridEqualsWholeNumberArithmetic) {
  const HslShift shifts[] = {{0, 0, 0}, {36, 50, 50}, {-36, -50, -50}, {7, -13, 29}, {180, 255, -1}, {-180, 0, 3}};
  for (const HslShift& shift : shifts) {
    std::vector<float> r, g, b;
    for (int i = 0; i < 86 * 86 * 86; ++i) {
      r.push_back(static_cast<float>(i / (86 * 86) * 3));
      g.push_back(static_cast<float>(i / 86 % 86 * 3));
      b.push_back(static_cast<float>(i % 86 * 3));
    }
    auto red = r, green = g, blue = b;
    shift_hsl(red.data(), green.data(), blue.data(), red.size(), shift);
    for (std::size_t i = 0; i < r.size(); ++i) {
      int rgb[3] = {static_cast<int>(r[i]), static_cast<int>(g[i]), static_cast<int>(b[i])};
      reference::shift_color(rgb, shift.h, shift.s, shift.l);
      ASSERT_TRUE(red[i] == static_cast<float>(rgb[0]) && green[i] == static_cast<float>(rgb[1]) &&
                  blue[i] == static_cast<float>(rgb[2]))
          << "r " << r[i] << " g " << g[i] << " b " << b[i] << " gave " << red[i] << ' ' << green[i] << ' ' << blue[i];
    }
  }
}

TEST(Color, KnownColoursTurnAndFade) {
  EXPECT_EQ(shifted(255, 0, 0, {60, 0, 0}), (std::array{1, 255, 1}));   // 120 degrees on; lightness 127.5 became 128
  EXPECT_EQ(shifted(255, 0, 0, {120, 0, 0}), (std::array{1, 1, 255}));  // 240 degrees on
  EXPECT_EQ(shifted(255, 0, 0, {0, -255, 0}), (std::array{128, 128, 128}));
  EXPECT_EQ(shifted(10, 200, 30, {0, 0, 255}), (std::array{255, 255, 255}));
  EXPECT_EQ(shifted(10, 200, 30, {0, 0, -255}), (std::array{0, 0, 0}));
  EXPECT_EQ(shifted(90, 90, 90, {50, 0, 10}), (std::array{100, 100, 100}));
}

// Computed with OpenCV 4.10's cvtColor, the shift being added and cut off between its two calls as MXNet does. OpenCV
// rounds products of floats, so where a fraction is a half it may go the other way.
TEST(Color, AgreesWithOpenCvWithinItsRounding) {
  struct Row {
    int rgb[3];
    HslShift shift;
    int expected[3];
  };
  const Row rows[] = {
      {{99, 206, 239}, {-22, -5, -32}, {43, 231, 137}},  {{189, 230, 118}, {-25, -5, -8}, {226, 170, 106}},
      {{144, 73, 8}, {-1, 4, -10}, {126, 58, 6}},        {{228, 231, 190}, {-13, 0, 47}, {255, 255, 255}},
      {{155, 112, 158}, {28, 8, -6}, {157, 101, 108}},   {{208, 7, 204}, {-17, -8, -3}, {99, 10, 200}},
      {{143, 113, 181}, {-2, -22, -44}, {97, 80, 126}},  {{231, 80, 27}, {-19, -46, -47}, {133, 31, 31}},
      {{44, 205, 203}, {-20, 15, 11}, {52, 220, 108}},   {{65, 175, 30}, {16, 27, -49}, {10, 96, 36}},
      {{212, 86, 125}, {-17, -15, 37}, {223, 149, 213}}, {{146, 254, 121}, {-3, -42, -27}, {130, 238, 84}},
      {{137, 106, 41}, {-3, -47, 46}, {178, 141, 92}},   {{233, 190, 129}, {13, 8, -42}, {218, 224, 54}},
      {{210, 103, 144}, {19, -24, -36}, {176, 66, 66}},  {{206, 5, 58}, {-28, -8, 25}, {200, 17, 245}},
      {{0, 208, 132}, {-11, 18, 11}, {0, 230, 61}},      {{110, 164, 105}, {9, 35, 14}, {109, 189, 125}},
      {{179, 27, 31}, {1, -15, -29}, {124, 24, 24}},     {{2, 68, 38}, {4, 0, 48}, {5, 161, 109}},
  };
  for (const Row& row : rows) {
    const auto got = shifted(row.rgb[0], row.rgb[1], row.rgb[2], row.shift);
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(got[c], row.expected[c], 2) << "red was " << row.rgb[0];
  }
}

}  // namespace
}  // namespace dtrain::data
