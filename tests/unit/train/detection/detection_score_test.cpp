#include "train/detection/detection_score.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/nn/networks.hpp>
#include <dtrain/train/found_objects.hpp>

namespace dtrain::train {
namespace {

// A picture of 200 x 100 pixels in the left upper corner of an input of 64 x 64.
nn::PictureObjects picture_of(std::vector<nn::Box> boxes, std::vector<std::int32_t> classes) {
  nn::PictureObjects picture{.boxes = std::move(boxes),
                             .classes = std::move(classes),
                             .crowd = {},
                             .areas = {},
                             .masks = {},
                             .height = 32,
                             .width = 64,
                             .scale = 0.32f,
                             .original_height = 100,
                             .original_width = 200};
  picture.crowd.assign(picture.boxes.size(), 0);
  picture.areas.assign(picture.boxes.size(), 2000.0);
  return picture;
}

nn::Graph detector() {
  return nn::build_network({.name = "retinanet", .image = {3, 64, 64}, .classes = 3, .backbone = "resnet-18"});
}

void put_row(std::vector<float>& result, std::size_t row, const nn::Box& box, float score, int label) {
  const float values[] = {box.left, box.top, box.right, box.bottom, score, static_cast<float>(label)};
  std::ranges::copy(values, result.begin() + static_cast<std::ptrdiff_t>(row) * nn::DetectionLoss::kRow);
}

TEST(FoundObjects, are_in_pixels_of_the_picture_and_end_at_the_first_without_a_score) {
  const nn::Graph graph = detector();
  const nn::DetectionLoss& layer = *nn::detection_of(graph);
  std::vector<float> result(static_cast<std::size_t>(layer.result_size()));
  put_row(result, 0, {16, 8, 32, 24}, 0.75f, 2);
  put_row(result, 2, {0, 0, 1, 1}, 0.5f, 1);
  const auto found = found_objects(layer, picture_of({}, {}), result);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].category, 2);
  EXPECT_EQ(found[0].score, 0.75);
  EXPECT_DOUBLE_EQ(found[0].box.left, 50);
  EXPECT_DOUBLE_EQ(found[0].box.top, 25);
  EXPECT_DOUBLE_EQ(found[0].box.width, 50);
  EXPECT_DOUBLE_EQ(found[0].box.height, 50);
  EXPECT_DOUBLE_EQ(found[0].area, 2500);
}

TEST(DetectionScore, is_the_average_precision_of_all_pictures) {
  const nn::Graph graph = detector();
  const auto size = static_cast<std::size_t>(nn::result_size(graph));
  const nn::Box box{16, 8, 32, 24}, elsewhere{40, 8, 56, 24};
  const std::vector<nn::PictureObjects> pictures = {picture_of({box}, {0}), picture_of({box}, {1}), picture_of({}, {})};
  const std::vector<std::uint32_t> ids = {5, 3, 9};
  std::vector<float> results(3 * size);
  const auto result = [&](std::size_t of) { return std::span(results).subspan(of * size, size); };
  std::vector<float> rows(size);
  put_row(rows, 0, box, 0.9f, 0);
  std::ranges::copy(rows, result(0).begin());
  put_row(rows, 0, elsewhere, 0.8f, 1);
  std::ranges::copy(rows, result(1).begin());
  DetectionScore score(graph);
  score.add({.n = 3, .sample_ids = ids.data(), .objects = pictures.data()}, results);
  EvaluationReport report;
  score.finish(*comm::make_single(), report);
  EXPECT_DOUBLE_EQ(report.boxes->ap, 0.5);  // of class 0 all, of class 1 none; of class 2 there is nothing
  EXPECT_EQ(report.accuracy, report.boxes->ap);
  EXPECT_TRUE(std::isnan(report.loss));
  ASSERT_EQ(report.boxes_by_class.size(), 3u);
  EXPECT_DOUBLE_EQ(report.boxes_by_class[0].ap50, 1);
  EXPECT_DOUBLE_EQ(report.boxes_by_class[1].ap50, 0);
  EXPECT_DOUBLE_EQ(report.boxes_by_class[2].ap50, -1);
}

}  // namespace
}  // namespace dtrain::train
