// The numbers of the loss and of its gradients were computed by PyTorch in float64.
#include "detection/heads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "detection/doubles.hpp"

namespace dtrain::backend {
namespace {

constexpr int kPixels = 4, kClassChannels = 18, kBoxChannels = 36;

const nn::DetectionLoss kLayer{.found = {.classes = 2, .image_height = 64, .image_width = 64},
                               .levels = {.count = 1, .height = 2, .width = 2}};

// Channels last; gradients begin at 0.
struct Case {
  AnchorSet anchors = anchors_of(kLayer);
  std::vector<float> classes, boxes;
  std::vector<float> by_classes = std::vector<float>(kPixels * kClassChannels);
  std::vector<float> by_boxes = std::vector<float>(kPixels * kBoxChannels);
  nn::PictureObjects objects{.boxes = {{2, 3, 30, 40}, {20, 30, 60, 62}},
                             .classes = {1, 0},
                             .crowd = {0, 0},
                             .areas = {},
                             .masks = {},
                             .height = 64,
                             .width = 64};

  Case() {
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      for (int i = 0; i < kClassChannels; ++i) {
        classes.push_back(static_cast<float>(i * 37 % 23 / 23.0 * 4 - 3 + 0.1 * pixel));
      }
      for (int i = 0; i < kBoxChannels; ++i) boxes.push_back(static_cast<float>(i * 29 % 31 / 31.0 - 0.5));
    }
  }
  Heads<const float> heads() const { return {{classes.data(), kClassChannels, 1}, {boxes.data(), kBoxChannels, 1}}; }
  HeadLoss loss() {
    return head_loss(kLayer, anchors, &objects, heads(),
                     {{by_classes.data(), kClassChannels, 1}, {by_boxes.data(), kBoxChannels, 1}});
  }
  float by_class(int pixel, int channel) const {
    return by_classes[static_cast<std::size_t>(pixel * kClassChannels + channel)];
  }
};

double sum_of(const std::vector<float>& values, bool absolute) {
  double sum = 0;
  for (const float value : values) sum += absolute ? std::abs(value) : value;
  return sum;
}

TEST(Heads, loss_is_that_of_pytorch) {
  const HeadLoss loss = Case().loss();
  EXPECT_NEAR(loss.classification, 2.093631481496059, 1e-6);
  EXPECT_NEAR(loss.boxes, 1.5512206157048543, 1e-6);
}

TEST(Heads, gradients_are_those_of_pytorch) {
  Case of;
  of.loss();
  EXPECT_NEAR(of.by_class(0, 0), 7.871796162207014e-05, 1e-9);
  EXPECT_NEAR(of.by_class(0, 9), 0.010920736781993833, 1e-7);
  EXPECT_NEAR(of.by_class(1, 17), 0.004170049554789817, 1e-7);
  EXPECT_NEAR(of.by_class(3, 5), 0.00029681880144078756, 1e-8);
  EXPECT_NEAR(sum_of(of.by_classes, false), 2.692363880008676, 1e-5);
  EXPECT_NEAR(sum_of(of.by_boxes, true), 4.0, 1e-6);
  EXPECT_NEAR(sum_of(of.by_boxes, false), -2.0 / 3, 1e-6);
}

TEST(Heads, groups_count_as_nothing) {
  Case of, empty;
  of.objects.crowd = {1, 1};
  empty.objects = {.boxes = {}, .classes = {}, .crowd = {}, .areas = {}, .masks = {}, .height = 64, .width = 64};
  const HeadLoss loss = of.loss();
  EXPECT_EQ(loss.boxes, 0);
  EXPECT_EQ(loss.classification, empty.loss().classification);
}

TEST(Heads, planes_have_the_loss_of_channels_last) {
  const Case of;
  std::vector<float> classes(of.classes.size()), boxes(of.boxes.size());
  for (std::size_t pixel = 0; pixel < kPixels; ++pixel) {
    for (std::size_t c = 0; c < kClassChannels; ++c) {
      classes[c * kPixels + pixel] = of.classes[pixel * kClassChannels + c];
    }
    for (std::size_t c = 0; c < kBoxChannels; ++c) boxes[c * kPixels + pixel] = of.boxes[pixel * kBoxChannels + c];
  }
  const HeadLoss planes =
      head_loss(kLayer, of.anchors, &of.objects, {{classes.data(), 1, kPixels}, {boxes.data(), 1, kPixels}}, {});
  const HeadLoss last = head_loss(kLayer, of.anchors, &of.objects, of.heads(), {});
  EXPECT_EQ(planes.classification, last.classification);
  EXPECT_EQ(planes.boxes, last.boxes);
}

// Rows of left, top, right, bottom, score and class.
std::vector<float> found_with(const std::vector<std::pair<int, float>>& logits) {
  const Case of;
  std::vector<float> classes(of.classes.size(), -9.0f), boxes(of.boxes.size(), 0.0f), result(600);
  for (const auto& [place, logit] : logits) classes[static_cast<std::size_t>(place)] = logit;
  find_objects(kLayer, of.anchors, &of.objects, {{classes.data(), kClassChannels, 1}, {boxes.data(), kBoxChannels, 1}},
               result);
  return result;
}

TEST(Heads, what_is_found_ends_at_the_edges_of_the_picture) {
  const std::vector<float> result = found_with({{3 * kClassChannels + 4 * 2 + 1, 2.0f}});
  EXPECT_EQ((std::vector<float>(result.begin(), result.begin() + 4)), (std::vector<float>{12, 12, 52, 52}));
  EXPECT_FLOAT_EQ(result[4], 0.880797f);
  EXPECT_EQ(result[5], 1);
  EXPECT_EQ(result[10], 0);
  EXPECT_EQ(found_with({{8, 2.0f}})[0], 0);
}

TEST(Heads, of_two_that_overlap_the_better_of_a_class_stays) {
  const int pixel = 3 * kClassChannels;
  const auto found = [](const std::vector<float>& result) { return (result[4] > 0) + (result[10] > 0); };
  EXPECT_EQ(found(found_with({{pixel + 8, 2.0f}, {pixel + 6, 1.0f}})), 1);
  EXPECT_EQ(found(found_with({{pixel + 8, 2.0f}, {pixel + 7, 1.0f}})), 2);
  EXPECT_EQ(found_with({{pixel + 8, 1.0f}, {pixel + 6, 2.0f}})[0], 16);
}

// By a sort of all that are above the threshold. `classes` has few values, so most scores are equal.
std::vector<float> found_by_sorting(const nn::DetectionLoss& layer, const Case& of, const std::vector<float>& classes) {
  std::vector<Candidate> all;
  for (int i = 0; i < kPixels * kClassChannels; ++i) {
    const double logit = classes[static_cast<std::size_t>(i)];
    const auto score = static_cast<float>(sigmoid_of(logit));
    if (score > layer.found.score_threshold) all.push_back({score, i % 2, i / 2});
  }
  std::ranges::sort(all, is_better);
  if (std::ssize(all) > layer.candidates) all.resize(static_cast<std::size_t>(layer.candidates));
  for (Candidate& each : all) {
    const nn::Box& anchor = of.anchors.boxes[static_cast<std::size_t>(each.origin)];
    each.box = clipped(decode_box(anchor, code_of_anchor(of.anchors, each.origin, of.heads().boxes)), 64, 64);
  }
  std::vector<float> result;
  for (const Candidate& each : without_doubles(all, layer.found.overlap_threshold, layer.found.detections)) {
    result.insert(result.end(), {each.box.left, each.box.top, each.box.right, each.box.bottom, each.score,
                                 static_cast<float>(each.label)});
  }
  result.resize(600, 0.0f);
  return result;
}

TEST(Heads, of_equal_scores_the_first_are_candidates) {
  const Case of;
  std::vector<float> classes;
  for (int i = 0; i < kPixels * kClassChannels; ++i) classes.push_back(static_cast<float>(i * 7 % 5 - 3));
  nn::DetectionLoss layer = kLayer;
  layer.found.overlap_threshold = 1;  // each candidate is found
  for (const int candidates : {1, 2, 3, 5, 14, 17, 50, 1000}) {
    layer.candidates = candidates;
    std::vector<float> result(600);
    find_objects(layer, of.anchors, &of.objects, {{classes.data(), kClassChannels, 1}, of.heads().boxes}, result);
    EXPECT_EQ(result, found_by_sorting(layer, of, classes)) << candidates;
    EXPECT_GT(result[4], 0);
  }
}

}  // namespace
}  // namespace dtrain::backend
