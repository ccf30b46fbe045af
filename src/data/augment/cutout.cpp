#include "cutout.hpp"

#include <algorithm>

#include <dtrain/base/random.hpp>

namespace dtrain::data {

// Words of its own: behind those of Draws, random_resized_crop takes as many as it needs.
nn::PixelSquare draw_cutout(const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  if (options.cutout == 0) return {};
  RandomStream random = key.stream(RandomUse::cutout);
  const auto begin = [&](int length) {
    const auto middle = static_cast<int>(random.below(static_cast<std::uint32_t>(length)));
    return middle - options.cutout / 2;
  };
  const int top = begin(shape.h), left = begin(shape.w);
  return {top, left, options.cutout};
}

void cut_out(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* out) {
  const auto [top, left, side] = draw_cutout(options, key, shape);
  const int first_y = std::max(top, 0), end_y = std::min(top + side, shape.h);
  const int first_x = std::max(left, 0), end_x = std::min(left + side, shape.w);
  for (int c = 0; c < shape.c; ++c) {
    for (int y = first_y; y < end_y; ++y) {
      float* const row = out + (std::ptrdiff_t{c} * shape.h + y) * shape.w;
      std::fill(row + first_x, row + end_x, 0.0f);
    }
  }
}

}  // namespace dtrain::data
