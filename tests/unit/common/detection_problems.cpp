// The layers of detectors, between convolutions.
#include "layer_cases.hpp"

namespace dtrain::testing {
namespace {

using nn::Add;
using nn::Convolution;
using nn::Dense;
using nn::GraphBuilder;
using nn::KeepLevels;
using nn::Levels;
using nn::Pyramid;
using nn::Upsample;

// Sizes that are no multiples of each other: a level may have an odd number of rows and columns.
constexpr nn::Shape kScene{3, 36, 44};

struct TwoLevels {
  int large = 0, small = 0;
};

// Of stride 8 and 16, as a feature pyramid joins them.
TwoLevels add_levels(GraphBuilder& b, int channels) {
  const int stem = b.add("stem", square(6, 5, 4, 2), {b.input()});
  const int large = b.add("large", square(channels, 3, 2, 1), {stem});
  const int small = b.add("small", square(channels, 3, 2, 1), {large});
  const int above = b.add("above", Upsample{}, {small, large});
  return {b.add("sum", Add{}, {large, above}), small};
}

Problem upsample() {
  GraphBuilder b("upsample", kScene);
  return make_problem(b.finish(b.add("logits", Dense{.out = 5}, {add_levels(b, 4).large})), kSamples);
}

Problem pyramid() {
  GraphBuilder b("pyramid", kScene);
  const TwoLevels levels = add_levels(b, 4);
  const int whole = b.add("pyramid", Pyramid{}, {levels.large, levels.small});
  const int mixed = b.add("mixed", square(4, 3, 1, 1), {whole});
  const int kept = b.add("kept", KeepLevels{{2, 5, 6}}, {mixed});
  return make_problem(b.finish(b.add("logits", Dense{.out = 5}, {b.add("last", square(3, 3, 1, 1), {kept})})),
                      kSamples);
}

// As the masks of regions are enlarged: between a convolution and a biased 1x1.
int transposed_block(GraphBuilder& b, int x, const nn::TransposedConvolution& layer) {
  Convolution last = square(5, 1, 1, 0);
  last.bias = true;
  x = b.add("relu", nn::Activation{}, {b.add("transposed", layer, {x})});
  return b.add("last", last, {x});
}

Problem transposed(const std::string& name, const nn::TransposedConvolution& layer) {
  return wrap(name, [&](GraphBuilder& b, int x) { return transposed_block(b, x, layer); });
}

// Channels that fill whole vectors.
Problem wide_transposed() {
  return wrap("transposed_wide", [](GraphBuilder& b, int x) {
    return transposed_block(b, b.add("wide", square(32, 1, 1, 0), {x}), {.out = 48, .stride = 2});
  });
}

// More than are computed at once.
Problem transposed_pixels() {
  return wrap("transposed_pixels",
              [](GraphBuilder& b, int x) { return transposed_block(b, x, {.out = 3, .stride = 2}); }, 0, {3, 40, 27});
}

// Pictures of different sizes with no, one and two objects, and a group.
std::vector<nn::PictureObjects> scenes() {
  const auto scene = [](std::vector<nn::Box> boxes, std::vector<std::int32_t> classes, bool group, int height,
                        int width) {
    nn::PictureObjects picture{.boxes = std::move(boxes),
                               .classes = std::move(classes),
                               .crowd = {},
                               .areas = {},
                               .masks = {},
                               .height = height,
                               .width = width,
                               .scale = 1,
                               .original_height = height,
                               .original_width = width};
    picture.crowd.assign(picture.boxes.size(), group);
    picture.areas.assign(picture.boxes.size(), 100.0);
    return picture;
  };
  return {scene({{2, 3, 30, 33}, {10, 1, 44, 20}}, {1, 0}, false, 36, 44), scene({}, {}, false, 36, 30),
          scene({{5, 5, 25, 30}}, {2}, true, 30, 44), scene({{1, 9, 18, 36}}, {2}, false, 36, 40)};
}

Problem detection_loss() {
  constexpr int kClasses = 3, kAnchors = nn::DetectionLoss::kAnchors;
  GraphBuilder b("detection_loss", kScene);
  const TwoLevels levels = add_levels(b, 8);
  const int whole = b.add("pyramid", Pyramid{}, {levels.large, levels.small});
  Convolution biased = square(kAnchors * kClasses, 3, 1, 1);
  biased.bias = true;
  const int classes = b.add("classes", biased, {whole});
  biased.out = kAnchors * 4;
  const int boxes = b.add("boxes", biased, {whole});
  Problem problem = make_problem(
      b.finish({classes, boxes},
               nn::DetectionLoss{
                   .found = {.classes = kClasses, .image_height = kScene.h, .image_width = kScene.w, .detections = 20},
                   .levels = {2, 5, 6}}),
      4);
  problem.objects = scenes();
  return problem;
}

}  // namespace

std::vector<Problem> detection_problems() {
  return {upsample(),
          pyramid(),
          detection_loss(),
          transposed("transposed_2", {.out = 4, .stride = 2}),
          transposed("transposed_3", {.out = 7, .stride = 3}),
          transposed("transposed_1", {.out = 5, .stride = 1}),
          wide_transposed(),
          transposed_pixels()};
}

}  // namespace dtrain::testing
