#include <algorithm>

#include <dtrain/train/progressive_sizes.hpp>

namespace dtrain::train {
namespace {

int scaled_extent(int extent, double scale, int increment) {
  const auto steps = static_cast<int>(extent * scale / increment + 0.5);
  return std::clamp(steps * increment, std::min(increment, extent), extent);
}

// What an output pixel of one axis reads.
struct ResizeTap {
  int first, second;
  float share;  // of the second
};

std::vector<ResizeTap> resize_taps(int from, int to) {
  std::vector<ResizeTap> taps;
  for (int i = 0; i < to; ++i) {
    const double place = std::max((i + 0.5) * from / to - 0.5, 0.0);
    const int first = std::min(static_cast<int>(place), from - 1);
    taps.push_back({first, std::min(first + 1, from - 1), static_cast<float>(place - first)});
  }
  return taps;
}

float blend(float a, float b, float share) { return a + share * (b - a); }

}  // namespace

nn::Shape ProgressiveSizes::at(double done, const nn::Shape& whole) const {
  if (done >= 1 - finetune) return whole;
  const double rise = 1 - finetune - delay;
  const double risen = done <= delay || rise <= 0 ? 0 : (done - delay) / rise;
  const double scale = initial_scale + (1 - initial_scale) * risen;
  return {whole.c, scaled_extent(whole.h, scale, increment), scaled_extent(whole.w, scale, increment)};
}

std::vector<nn::Shape> ProgressiveSizes::all(const nn::Shape& whole) const {
  const int looks = 64 * (whole.h + whole.w);
  std::vector<nn::Shape> sizes{at(0, whole)};
  for (int look = 0; look <= looks; ++look) {
    const double risen = static_cast<double>(look) / looks;
    const nn::Shape size = at(std::min(1.0, delay + (1 - finetune - delay) * risen), whole);
    if (sizes.back() != size) sizes.push_back(size);
  }
  if (sizes.back() != whole) sizes.push_back(whole);
  return sizes;
}

void resize_images(const float* images, int n, const nn::Shape& from, const nn::Shape& to, float* resized) {
  const std::vector<ResizeTap> rows = resize_taps(from.h, to.h), columns = resize_taps(from.w, to.w);
  for (std::int64_t plane = 0; plane < std::int64_t{n} * from.c; ++plane, images += from.h * from.w) {
    for (const ResizeTap& row : rows) {
      const float *const above = images + row.first * from.w, *const below = images + row.second * from.w;
      for (const ResizeTap& column : columns) {
        const float up = blend(above[column.first], above[column.second], column.share);
        const float down = blend(below[column.first], below[column.second], column.share);
        *resized++ = blend(up, down, row.share);
      }
    }
  }
}

}  // namespace dtrain::train
