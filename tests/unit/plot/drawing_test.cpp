#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "drawing_raster.hpp"

namespace dtrain::plot {
namespace {

TEST(Drawing, TextOfASvgCannotBecomeMarkup) {
  const Drawing drawing{10, 10, {Label{{0, 0}, "<a&b>\x01", 12, 0}}};
  EXPECT_NE(to_svg(drawing).find(">&lt;a&amp;b></text>"), std::string::npos);
}

TEST(Drawing, ASvgHasNoByteThatIsNoUtf8) {
  const Drawing drawing{10, 10, {Label{{0, 0}, "caf\xe9 \xc3\xa9", 12, 0}}};
  EXPECT_NE(to_svg(drawing).find(">caf\xef\xbf\xbd \xc3\xa9</text>"), std::string::npos);
}

std::uint32_t pixel(const data::Image& image, int x, int y) {
  const auto* p = &image.pixels[static_cast<std::size_t>((y * image.w + x) * 3)];
  return std::uint32_t{p[0]} << 16 | std::uint32_t{p[1]} << 8 | p[2];
}

TEST(Drawing, AnAreaFillsExactlyItsPixels) {
  const data::Image image = to_image({10, 10, {Area{{2, 3}, {5, 7}, 0x123456}}}, 2);
  EXPECT_EQ(image.w, 20);
  EXPECT_EQ(pixel(image, 4, 6), 0x123456u);
  EXPECT_EQ(pixel(image, 9, 13), 0x123456u);
  EXPECT_EQ(pixel(image, 3, 6), 0xFFFFFFu);
  EXPECT_EQ(pixel(image, 10, 13), 0xFFFFFFu);
  EXPECT_EQ(pixel(image, 4, 14), 0xFFFFFFu);
}

TEST(Drawing, LinesDotsAndLettersLeaveTheirColour) {
  const data::Image image = to_image(
      {40, 20, {Line{{{0, 5}, {40, 5}}, 0xFF0000, 2}, Dot{{30, 14}, 3, 0x00FF00}, Label{{2, 18}, "I", 16, 0x0000FF}}},
      1);
  EXPECT_EQ(pixel(image, 20, 4), 0xFF0000u);
  EXPECT_EQ(pixel(image, 20, 8), 0xFFFFFFu);
  EXPECT_EQ(pixel(image, 30, 14), 0x00FF00u);
  int letters = 0;
  for (int y = 6; y < 20; ++y) {
    for (int x = 0; x < 12; ++x) letters += pixel(image, x, y) != 0xFFFFFF ? 1 : 0;
  }
  EXPECT_GT(letters, 8);
}

TEST(Drawing, WhatLeavesThePaperIsCut) {
  const data::Image image = to_image({10, 10, {Line{{{-50, 5}, {500, 5}}, 0, 4}, Label{{8, 12}, "WWWW", 20, 0}}}, 1);
  EXPECT_EQ(pixel(image, 9, 5), 0u);
}

// FreeType 2.12 gives up on some long slanting outlines; this one is of a real run.
TEST(Drawing, ALongLineIsDrawnWhereverItsCornersAre) {
  for (double shift = 0; shift < 8; shift += 0.05) {
    const Line line{{{154.6, 163.3 + shift},
                     {224.5, 153.5},
                     {326.3, 202.6 + shift},
                     {434.3, 205.8},
                     {542.2, 206.3},
                     {650.9, 206.2},
                     {758.7, 205.9},
                     {867.5, 206.8},
                     {976.0, 206.2}},
                    0x0072B2,
                    1.8};
    const data::Image image = to_image({1000, 709, {line}}, 2);
    EXPECT_EQ(pixel(image, 1084, 413), 0x0072B2u) << shift;
  }
}

// A long run has steps that lie closer than the pixels, and a short one is a point.
TEST(Drawing, ALineWithoutLengthIsADot) {
  const Line line{{{50, 50}, {50, 50}, {50.0001, 50}}, 0x0072B2, 4};
  const data::Image image = to_image({100, 100, {line}}, 2);
  EXPECT_EQ(pixel(image, 100, 100), 0x0072B2u);
  EXPECT_EQ(pixel(image, 102, 100), 0x0072B2u);
  EXPECT_EQ(pixel(image, 106, 100), 0xFFFFFFu);
}

std::vector<std::uint8_t> pixels_of(const std::string& text) {
  return to_image({24, 24, {Label{{2, 18}, text, 16, 0}}}, 2).pixels;
}

TEST(Drawing, HasTheLettersOfClassesInOtherLanguages) {
  const std::vector<std::string> letters{"e",      "\u00e9", "\u00c5", "\u00df", "\u0142", "\u0159", "\u0130", "\u021b",
                                         "\u03bb", "\u0394", "\u0416", "\u0451", "\u0491", "\u20ac", "\u2019", ""};
  const std::vector<std::uint8_t> of_others = pixels_of("\u732b");
  std::set<std::vector<std::uint8_t>> looks{of_others};
  for (const std::string& letter : letters) looks.insert(pixels_of(letter));
  EXPECT_EQ(looks.size(), letters.size() + 1);
}

// As file systems of macOS spell folders: the letter, then its mark.
TEST(Drawing, AMarkOfItsOwnStandsOnItsLetter) {
  EXPECT_NE(pixels_of("e\u0301"), pixels_of("e"));
  EXPECT_DOUBLE_EQ(text_widths(std::vector<std::string>{"e\u0301"}, 16)[0],
                   text_widths(std::vector<std::string>{"e"}, 16)[0]);
}

}  // namespace
}  // namespace dtrain::plot
