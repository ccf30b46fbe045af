#include <gtest/gtest.h>

#include "plot/draw_objects.hpp"
#include "plot/plot_style.hpp"

namespace dtrain::plot {
namespace {

using Rgb = std::array<int, 3>;

data::Image grey(int h, int w) {
  return {3, h, w, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * h * w), 128)};
}

Rgb at(const data::Image& image, int y, int x) {
  const auto* pixel = &image.pixels[static_cast<std::size_t>(3 * (y * image.w + x))];
  return {pixel[0], pixel[1], pixel[2]};
}

constexpr Rgb kGround{128, 128, 128};
constexpr Rgb kFirst{0xE6, 0x9F, 0x00};

TEST(DrawObjects, DrawsABoxInItsColour) {
  data::Image image = grey(100, 120);
  draw_objects(std::vector<ShownObject>{{.box = {20, 30, 60, 40}}}, {}, image);
  EXPECT_EQ(at(image, 50, 50), kGround);
  EXPECT_EQ(at(image, 5, 5), kGround);
  bool found = false;
  for (int x = 17; x < 24; ++x) found |= at(image, 50, x) == kFirst;
  EXPECT_TRUE(found);
}

TEST(DrawObjects, TintsTheMaskOfAMagnifiedPart) {
  data::Image image = grey(100, 100);
  std::vector<std::uint8_t> mask(10 * 10, 0);
  for (int y = 2; y < 7; ++y) {
    for (int x = 3; x < 8; ++x) mask[static_cast<std::size_t>(y * 10 + x)] = 1;
  }
  draw_objects(std::vector<ShownObject>{{.box = {3, 2, 5, 5}, .label = 7, .mask = mask, .mask_width = 10}},
               {.left = 20, .top = 30, .zoom = 4, .height = 40, .width = 40}, image);
  const Rgb inside = at(image, 30 + 4 * 4 + 1, 20 + 5 * 4 + 1);
  EXPECT_GT(inside[0], 150);  // label 7 has the first colour again
  EXPECT_LT(inside[2], 100);
  EXPECT_EQ(at(image, 30 + 9 * 4, 20 + 9 * 4), kGround);
}

TEST(DrawObjects, WritesNamesAlsoWhereThereIsNoRoomAboveABox) {
  data::Image image = grey(80, 200), nameless = grey(80, 200);
  ShownObject object{.box = {2, 1, 150, 60}, .text = "potted plant 0.97"};
  draw_objects(std::vector{object}, {}, image);
  object.text.clear();
  draw_objects(std::vector{object}, {}, nameless);
  EXPECT_NE(image.pixels, nameless.pixels);
  bool dark = false;
  for (int x = 4; x < 60; ++x) dark |= at(image, 9, x)[0] < 90;
  EXPECT_TRUE(dark);
}

TEST(DrawObjects, KeepsInsideThePicture) {
  data::Image image = grey(30, 30);
  draw_objects(std::vector<ShownObject>{{.box = {-50, -50, 500, 500}, .text = "a name that is wider than the picture"},
                                        {.box = {25, 25, 100, 1}, .crowd = true}},
               {}, image);
  EXPECT_EQ(image.pixels.size(), 2700u);
}

}  // namespace
}  // namespace dtrain::plot
