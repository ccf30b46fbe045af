#include <gtest/gtest.h>

#include <dtrain/backend/detection.hpp>

namespace dtrain::backend {
namespace {

void expect_box(const nn::Box& box, float left, float top, float right, float bottom) {
  EXPECT_EQ(box.left, left);
  EXPECT_EQ(box.top, top);
  EXPECT_EQ(box.right, right);
  EXPECT_EQ(box.bottom, bottom);
}

// 64x96 pixels: a level of 2x3 and one of 1x2.
const nn::DetectionLoss kTwoLevels{.found = {.classes = 2, .image_height = 64, .image_width = 96},
                                   .levels = {.count = 2, .height = 2, .width = 3}};

TEST(Anchors, of_the_first_pixel_are_those_of_torchvision) {
  const AnchorSet anchors = anchors_of(kTwoLevels);
  expect_box(anchors.boxes[0], -23, -11, 23, 11);
  expect_box(anchors.boxes[2], -35, -18, 35, 18);
  expect_box(anchors.boxes[4], -20, -20, 20, 20);
  expect_box(anchors.boxes[8], -18, -35, 18, 35);
}

TEST(Anchors, double_from_level_to_level_and_move_by_its_stride) {
  const AnchorSet anchors = anchors_of(kTwoLevels);
  const auto level = static_cast<std::size_t>(anchors.level_begins[1]);
  expect_box(anchors.boxes[level], -45, -23, 45, 23);
  expect_box(anchors.boxes[level + 9 + 8], -36 + 48, -71, 36 + 48, 71);
  expect_box(anchors.boxes[9 * 5], -23 + 64, -11 + 32, 23 + 64, 11 + 32);
}

TEST(Anchors, of_half_the_size_are_those_of_torchvision_with_sizes_of_16) {
  nn::DetectionLoss layer = kTwoLevels;
  layer.anchor_size = 16;
  const AnchorSet anchors = anchors_of(layer);
  expect_box(anchors.boxes[0], -11, -6, 11, 6);
  expect_box(anchors.boxes[4], -10, -10, 10, 10);  // of size 20
  expect_box(anchors.boxes[static_cast<std::size_t>(anchors.level_begins[1])], -23, -11, 23, 11);
}

TEST(Anchors, of_both_stages_have_one_size) {
  const nn::Levels levels{.count = 1, .height = 2, .width = 2};
  const auto proposed =
      anchors_of(nn::Proposals{.levels = levels, .image_height = 64, .image_width = 64, .anchor_size = 8});
  const auto judged =
      anchors_of(nn::RegionLoss{.found = {.image_height = 64, .image_width = 64}, .levels = levels, .anchor_size = 8});
  for (const AnchorSet& anchors : {proposed, judged}) expect_box(anchors.boxes[1], -4, -4, 4, 4);
}

TEST(Anchors, know_where_the_values_of_their_pixel_lie) {
  const AnchorSet anchors = anchors_of(kTwoLevels);
  EXPECT_EQ(anchors.boxes.size(), 9U * 8);
  EXPECT_EQ(anchors.level_begins, (std::vector<std::int64_t>{0, 54, 72}));
  EXPECT_EQ(anchors.pixels, (std::vector<std::int32_t>{0, 1, 2, 6, 7, 8, 4, 5}));
}

TEST(RegionLevels, begin_at_twice_the_side_of_the_one_before) {
  const auto levels =
      region_levels({.levels = {.count = 5, .height = 64, .width = 64}, .image_height = 256, .image_width = 256});
  ASSERT_EQ(levels.size(), 4U);
  const float scales[] = {0.25f, 0.125f, 0.0625f, 0.03125f}, sides[] = {0, 112, 224, 448};
  for (std::size_t level = 0; level < levels.size(); ++level) {
    EXPECT_EQ(levels[level].scale, scales[level]);
    EXPECT_LE(levels[level].from_side, sides[level]);
    EXPECT_NEAR(levels[level].from_side, sides[level], 1e-3);
  }
}

}  // namespace
}  // namespace dtrain::backend
