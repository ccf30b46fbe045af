#include "detection/boxes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "detection/match.hpp"

namespace dtrain::backend {
namespace {

TEST(Boxes, overlap_is_intersection_over_union) {
  EXPECT_FLOAT_EQ(overlap_of({0, 0, 10, 10}, {5, 0, 15, 10}), 1.0f / 3);
  EXPECT_EQ(overlap_of({0, 0, 10, 10}, {10, 0, 20, 10}), 0);
  EXPECT_EQ(overlap_of({3, 4, 10, 10}, {3, 4, 10, 10}), 1);
}

TEST(Boxes, codes_are_those_of_torchvision_and_decode_to_the_box) {
  const nn::Box anchor{10, 20, 50, 100}, box{14, 30, 70, 90};
  const BoxCode code = encode_box(anchor, box);
  EXPECT_FLOAT_EQ(code[0], 0.3f);
  EXPECT_FLOAT_EQ(code[1], 0);
  EXPECT_FLOAT_EQ(code[2], 0.33647221f);
  EXPECT_FLOAT_EQ(code[3], -0.28768209f);
  const nn::Box again = decode_box(anchor, code);
  EXPECT_NEAR(again.left, 14, 1e-4);
  EXPECT_NEAR(again.top, 30, 1e-4);
  EXPECT_NEAR(again.right, 70, 1e-4);
  EXPECT_NEAR(again.bottom, 90, 1e-4);
}

TEST(Boxes, decode_to_at_most_62_and_a_half_times_the_anchor) {
  const nn::Box box = decode_box({0, 0, 10, 10}, {0, 0, 50, 0});
  EXPECT_NEAR(box.right - box.left, 625, 1e-2);
  EXPECT_EQ(box.bottom - box.top, 10);
}

TEST(Match, an_anchor_is_an_object_background_or_neither_by_its_overlap) {
  const std::vector<nn::Box> objects = {{0, 0, 10, 10}};
  const std::vector<nn::Box> anchors = {{0, 0, 10, 9}, {0, 0, 10, 4.5f}, {0, 0, 10, 3}};
  EXPECT_EQ(match_anchors(anchors, objects, {}), (std::vector<std::int32_t>{0, kNeither, kBackground}));
}

TEST(Match, the_anchor_that_an_object_overlaps_most_is_its_own) {
  const std::vector<nn::Box> objects = {{0, 0, 10, 10}};
  const std::vector<nn::Box> anchors = {{0, 0, 10, 2}, {0, 0, 10, 3}};
  EXPECT_EQ(match_anchors(anchors, objects, {}), (std::vector<std::int32_t>{kBackground, 0}));
  EXPECT_EQ(match_anchors(anchors, objects, {.best_always = false}),
            (std::vector<std::int32_t>{kBackground, kBackground}));
}

// Small anchors leave a strip at the right edge that none of them reaches.
TEST(Match, an_object_that_overlaps_no_anchor_has_none) {
  const AnchorSet anchors = anchors_of(nn::DetectionLoss{
      .found = {.classes = 1, .image_height = 512, .image_width = 512}, .levels = {5, 64, 64}, .anchor_size = 4});
  const std::vector<nn::Box> objects = {{200, 200, 300, 300}, {508, 100, 512, 140}};
  const std::vector<std::int32_t> matches = match_anchors(anchors.boxes, objects, {});
  EXPECT_EQ(std::ranges::count(matches, 1), 0);
  const auto of_the_other = std::ranges::count(matches, 0);
  EXPECT_GT(of_the_other, 0);
  EXPECT_LT(of_the_other, 100) << "and not all that are left";
}

TEST(Match, without_objects_all_is_background) {
  const std::vector<nn::Box> anchors = {{0, 0, 10, 10}};
  EXPECT_EQ(match_anchors(anchors, {}, {}), (std::vector<std::int32_t>{kBackground}));
}

}  // namespace
}  // namespace dtrain::backend
