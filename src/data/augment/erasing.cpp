#include "erasing.hpp"

#include <algorithm>

#include <dtrain/base/math.hpp>

namespace dtrain::data {
namespace {

constexpr int kErasingTries = 10;
constexpr double kLeastArea = 0.02, kMostArea = 1.0 / 3, kLeastAspect = 0.3;  // height to width: up to its inverse

double uniform_between(RandomStream& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.uniform());
}

int whole_below(RandomStream& random, int limit) {
  return static_cast<int>(random.below(static_cast<std::uint32_t>(limit)));
}

}  // namespace

ErasedBox draw_erasing(const Augment& options, const nn::Shape& shape, RandomStream& random) {
  if (!(random.uniform() < options.random_erasing)) return {};
  const double log_aspect = portable_log(kLeastAspect);
  for (int i = 0; i < kErasingTries; ++i) {
    const double area = uniform_between(random, kLeastArea, kMostArea) * shape.h * shape.w;
    const double aspect = portable_exp(uniform_between(random, log_aspect, -log_aspect));
    const int h = static_cast<int>(math_parts::nearest(portable_sqrt(area * aspect)));
    const int w = static_cast<int>(math_parts::nearest(portable_sqrt(area / aspect)));
    if (h >= shape.h || w >= shape.w) continue;
    const int top = whole_below(random, shape.h - h + 1), left = whole_below(random, shape.w - w + 1);
    return {top, left, h, w};
  }
  return {};
}

void erase(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* out) {
  if (options.random_erasing == 0) return;
  RandomStream random = key.stream(RandomUse::erasing);
  const ErasedBox box = draw_erasing(options, shape, random);
  for (int c = 0; c < shape.c; ++c) {
    float value = options.erasing_mode == ErasingMode::rand ? random.normal() : 0;
    for (int y = box.top; y < box.top + box.h; ++y) {
      float* const row = out + (std::ptrdiff_t{c} * shape.h + y) * shape.w;
      for (int x = box.left; x < box.left + box.w; ++x) {
        if (options.erasing_mode == ErasingMode::pixel) value = random.normal();
        row[x] = value;
      }
    }
  }
}

}  // namespace dtrain::data
