#include <array>
#include <span>

#include <dtrain/backend/detection.hpp>
#include <dtrain/base/math.hpp>

namespace dtrain::backend {
namespace {

constexpr int kShapes = 3, kSizes = 3;
static_assert(kShapes * kSizes == nn::DetectionLoss::kAnchors && kShapes == nn::Proposals::kAnchors);

// To the nearest integer, of two the even one, as PyTorch rounds.
float rounded(float value) { return static_cast<float>(math_parts::nearest(static_cast<double>(value))); }

// Around the point 0, 0. A size is `smallest`, its 2^(1/3) and its 2^(2/3), without the fraction; of these the first
// `sizes`.
std::vector<nn::Box> boxes_of_level(int smallest, std::size_t sizes) {
  constexpr std::array<double, kSizes> kSteps = {1, 1.2599210498948732, 1.5874010519681994};
  constexpr std::array<float, kShapes> kRatios = {0.5f, 1.0f, 2.0f};  // height by width
  std::vector<nn::Box> boxes;
  for (const float ratio : kRatios) {
    const auto down = static_cast<float>(portable_sqrt(static_cast<double>(ratio)));
    for (const double step : std::span(kSteps).first(sizes)) {
      const auto size = static_cast<float>(static_cast<int>(smallest * step));
      const float width = 1 / down * size, height = down * size;
      boxes.push_back({rounded(-width / 2), rounded(-height / 2), rounded(width / 2), rounded(height / 2)});
    }
  }
  return boxes;
}

// `smallest`: of the first level, pixels.
AnchorSet make_anchors(const nn::Levels& levels, int image_height, int image_width, int smallest, std::size_t sizes) {
  AnchorSet set;
  set.at_pixel = kShapes * std::int64_t(sizes);
  const int row = nn::extent_of(levels).width;
  for (const nn::LevelPlace& place : nn::level_places(levels)) {
    set.level_begins.push_back(std::ssize(set.boxes));
    const std::vector<nn::Box> shapes = boxes_of_level(smallest, sizes);
    smallest *= 2;
    const int step_y = image_height / place.height, step_x = image_width / place.width;
    set.steps.push_back({step_y, step_x});
    for (int y = 0; y < place.height; ++y) {
      for (int x = 0; x < place.width; ++x) {
        set.pixels.push_back((place.top + y) * row + place.left + x);
        const auto across = static_cast<float>(x * step_x), down = static_cast<float>(y * step_y);
        for (const nn::Box& shape : shapes) {
          set.boxes.push_back({across + shape.left, down + shape.top, across + shape.right, down + shape.bottom});
        }
      }
    }
  }
  set.level_begins.push_back(std::ssize(set.boxes));
  return set;
}

}  // namespace

AnchorSet anchors_of(const nn::DetectionLoss& layer) {
  return make_anchors(layer.levels, layer.found.image_height, layer.found.image_width, layer.anchor_size, kSizes);
}

AnchorSet anchors_of(const nn::Proposals& layer) {
  return make_anchors(layer.levels, layer.image_height, layer.image_width, layer.anchor_size, 1);
}

AnchorSet anchors_of(const nn::RegionLoss& layer) {
  return make_anchors(layer.levels, layer.found.image_height, layer.found.image_width, layer.anchor_size, 1);
}

}  // namespace dtrain::backend
