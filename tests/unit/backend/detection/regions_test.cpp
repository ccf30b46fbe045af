// What happens between the two stages of a detector.
#include "detection/regions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "detection/kept_objects.hpp"
#include "detection/match.hpp"
#include "detection/region_align.hpp"

namespace dtrain::backend {
namespace {

std::vector<std::int32_t> many_matches() {
  std::vector<std::int32_t> matches(40, kBackground);
  for (const std::size_t object : {3u, 9u, 10u, 30u, 39u}) matches[object] = 1;
  for (const std::size_t neither : {0u, 11u}) matches[neither] = kNeither;
  return matches;
}

RegionDraw draw_of(std::uint32_t sample) { return {{.seed = 5, .epoch = 2}, 7, sample}; }

TEST(DrawBalanced, takes_objects_first_and_background_for_the_rest) {
  const std::vector<std::int32_t> matches = many_matches();
  const Drawn drawn = draw_balanced(matches, 2, 8, draw_of(1));
  EXPECT_EQ(drawn.objects.size(), 2u);
  EXPECT_EQ(drawn.background.size(), 6u);
  EXPECT_TRUE(std::ranges::is_sorted(drawn.background));
  for (const std::size_t i : drawn.objects) EXPECT_EQ(matches[i], 1);
  for (const std::size_t i : drawn.background) EXPECT_EQ(matches[i], kBackground);
}

TEST(DrawBalanced, takes_all_where_there_are_few) {
  const Drawn drawn = draw_balanced(many_matches(), 20, 100, draw_of(1));
  EXPECT_EQ(drawn.objects, (std::vector<std::size_t>{3, 9, 10, 30, 39}));
  EXPECT_EQ(drawn.background.size(), 33u);
}

TEST(DrawBalanced, depends_on_the_sample_and_on_nothing_else) {
  const std::vector<std::int32_t> matches = many_matches();
  const auto background = [&](std::uint32_t sample) {
    return draw_balanced(matches, 2, 8, draw_of(sample)).background;
  };
  EXPECT_EQ(background(1), background(1));
  EXPECT_NE(background(1), background(2));
}

constexpr nn::Levels kLevels{2, 32, 32};  // of a picture of 128x128

nn::RegionAlign align() { return {.size = 2, .levels = kLevels, .used = 2, .image_height = 128, .image_width = 128}; }

// On levels where each pixel is 10 y + x, and 1000 more in the second.
std::vector<float> aligned(const nn::Box& region) {
  const RegionAligner aligner(align());
  const std::vector<nn::LevelPlace> places = nn::level_places(kLevels);
  const nn::Extent extent = nn::extent_of(kLevels);
  std::vector<float> pixels(static_cast<std::size_t>(extent.height * extent.width), -1e6f);
  for (std::size_t level = 0; level < places.size(); ++level) {
    for (int y = 0; y < places[level].height; ++y) {
      for (int x = 0; x < places[level].width; ++x) {
        const int pixel = (places[level].top + y) * extent.width + places[level].left + x;
        pixels[static_cast<std::size_t>(pixel)] = static_cast<float>(10 * y + x + 1000 * static_cast<int>(level));
      }
    }
  }
  std::vector<Tap> taps(static_cast<std::size_t>(aligner.points() * kTaps));
  aligner.taps_of(region, taps);
  std::vector<float> values;
  for (auto tap = taps.begin(); tap != taps.end(); tap += kTaps) {
    values.push_back(std::accumulate(tap, tap + kTaps, 0.0f, [&](float sum, const Tap& each) {
      return sum + each.weight * pixels[static_cast<std::size_t>(each.pixel)];
    }));
  }
  return values;
}

// The centres of the points of a level of stride 4: 8 / 4 + 1 and 8 / 4 + 3, and so on.
TEST(RegionAligner, reads_the_centres_of_the_points) {
  EXPECT_EQ(aligned({8, 8, 24, 24}), (std::vector<float>{33, 35, 53, 55}));
  EXPECT_EQ(aligned({8, 40, 24, 56}), (std::vector<float>{113, 115, 133, 135}));
}

TEST(RegionAligner, reads_large_regions_in_the_next_level) {
  EXPECT_EQ(aligned({0, 0, 111, 111}).front(), aligned({0, 0, 111, 111})[1] - 111.0f / 8);
  EXPECT_LT(aligned({0, 0, 111, 111}).back(), 1000);
  EXPECT_GT(aligned({0, 0, 112, 112}).front(), 1000);
}

TEST(RegionAligner, gives_nothing_for_a_region_that_is_not_there) {
  EXPECT_EQ(aligned({}), (std::vector<float>{0, 0, 0, 0}));
}

// The last of the four samples of the left points lies between a pixel inside and one outside.
TEST(MaskInRegion, is_the_mean_over_its_points) {
  std::vector<std::uint8_t> mask(64, 0);
  for (std::size_t pixel = 0; pixel < mask.size(); ++pixel) mask[pixel] = pixel % 8 < 4 ? 1 : 0;
  EXPECT_EQ(mask_in_region(mask, 8, 8, {0, 0, 8, 8}, 2), (std::vector<float>{0.875f, 0, 0.875f, 0}));
}

// Two regions that are the same object, one of background, one that is not there; two classes and the background.
struct Classified {
  std::vector<Region> regions{
      {{10, 10, 30, 30}, 0.9f, 0}, {{11, 10, 30, 30}, 0.8f, 0}, {{40, 40, 60, 60}, 0.7f, 0}, {}};
  std::vector<float> logits{0, 9, 1, 0, 7, 1, 9, 0, 0, 0, 9, 0}, codes = std::vector<float>(48, 0.0f);
  Heads<const float> heads() const { return {{logits.data(), 3, 1}, {codes.data(), 12, 1}}; }
};

nn::FoundRegions finder() {
  return {{.classes = 2, .image_height = 64, .image_width = 64, .detections = 3, .mask = 0}};
}

TEST(FindRegions, names_an_object_once) {
  const Classified of;
  const std::vector<Region> found = find_regions(finder(), of.regions, nullptr, of.heads());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].label, 0);
  EXPECT_GT(found[0].value, 0.99f);
  EXPECT_EQ(found[0].box.left, 10);
  EXPECT_FALSE(found[1].is_there());
}

TEST(FindRegions, ends_boxes_at_the_picture) {
  const Classified of;
  const nn::PictureObjects picture{
      .boxes = {}, .classes = {}, .crowd = {}, .areas = {}, .masks = {}, .height = 64, .width = 25};
  EXPECT_EQ(find_regions(finder(), of.regions, &picture, of.heads())[0].box.right, 25);
}

TEST(FindRegions, takes_the_objects_in_training) {
  std::vector<Region> regions = Classified().regions;
  regions[0].value = kBackground;
  regions[2].value = 4;
  const std::vector<Region> found = object_regions(finder(), regions);
  EXPECT_EQ(found[0].box.left, 11);
  EXPECT_EQ(found[1].value, 4);
  EXPECT_FALSE(found[2].is_there());
}

// The last objects are the true boxes.
TEST(FindRegions, spreads_over_the_objects_in_training_where_they_are_too_many) {
  std::vector<Region> regions;
  for (int k = 0; k < 7; ++k) regions.push_back({{static_cast<float>(k), 0, 20, 20}, static_cast<float>(k), 0});
  regions.push_back({{50, 50, 60, 60}, kBackground, 0});
  const std::vector<Region> found = object_regions(finder(), regions);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].box.left, 2);
  EXPECT_EQ(found[1].box.left, 4);
  EXPECT_EQ(found[2].box.left, 6);
}

TEST(RowOfObject, is_taken_by_one_object) {
  for (const int objects : {3, 100, 101, 128, 250}) {
    std::int32_t next = 0;
    for (std::int32_t k = 0; k < objects; ++k) {
      const std::int32_t row = row_of_object(k, objects, 100);
      if (row == kNoRow) continue;
      EXPECT_EQ(row, next++) << k << " of " << objects;
    }
    EXPECT_EQ(next, std::min(objects, 100));
    EXPECT_EQ(row_of_object(objects - 1, objects, 100), next - 1);
  }
}

}  // namespace
}  // namespace dtrain::backend
