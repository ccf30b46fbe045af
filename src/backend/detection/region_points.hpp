// Where the points of a region lie between pixels, in float32 as torchvision computes it. For every backend.
#pragma once

#include <array>
#include <cstdint>

#include "boxes.hpp"
#include "tap.hpp"

namespace dtrain::backend {

constexpr int kRegionSamples = 2;  // of a point, along each side

// Between two pixels of a row or column.
struct Between {
  int low = 0, high = 0;
  float to_high = 0;  // how far from the low one
  bool outside = false;
};

constexpr Between between(float at, int extent) {
  const auto size = static_cast<float>(extent);
  if (!(at >= -1 && at <= size)) return {.outside = true};
  const float inside = std::max(at, 0.0f);
  const int low = static_cast<int>(inside);
  if (low >= extent - 1) return {extent - 1, extent - 1, 0};
  return {low, low + 1, inside - static_cast<float>(low)};
}

// A sample at a point: four pixels with what each counts. Outside the picture none does.
constexpr std::array<Tap, 4> sample_at(float y, float x, int height, int width, int row) {
  const Between down = between(y, height), across = between(x, width);
  if (down.outside || across.outside) return {};
  const float below = down.to_high, above = 1 - below, right = across.to_high, left = 1 - right;
  return {Tap{down.low * row + across.low, rounded_product(above, left)},
          Tap{down.low * row + across.high, rounded_product(above, right)},
          Tap{down.high * row + across.low, rounded_product(below, left)},
          Tap{down.high * row + across.high, rounded_product(below, right)}};
}

// Where points begin in a region and how large they are.
struct PointGrid {
  float top, left, height, width;
};

constexpr PointGrid grid_of(const nn::Box& region, float scale, int size) {
  const float left = rounded_product(region.left, scale), top = rounded_product(region.top, scale);
  const float width = std::max(rounded_product(region.right, scale) - left, 1.0f);
  const float height = std::max(rounded_product(region.bottom, scale) - top, 1.0f);
  return {top, left, height / static_cast<float>(size), width / static_cast<float>(size)};
}

// Where sample `which` of `samples` of point `index` lies along one side.
constexpr float sample_place(float begin, float step, int index, int which, int samples) {
  return begin + rounded_product(static_cast<float>(index), step) +
         rounded_product(static_cast<float>(which) + 0.5f, step) / static_cast<float>(samples);
}

// A point of a picture's mask within a region: the mean over as many samples as it is pixels wide and high.
// `is_set(pixel)`: whether a pixel of the picture is the object's.
template <typename IsSet>
constexpr float mask_point(const PointGrid& grid, int row, int column, int height, int width, IsSet is_set) {
  const auto samples_of = [](float size) {
    const int whole = static_cast<int>(size);
    return static_cast<float>(whole) < size ? whole + 1 : whole;
  };
  const int down = samples_of(grid.height), across = samples_of(grid.width);
  float sum = 0;
  for (int i = 0; i < down; ++i) {
    const float y = sample_place(grid.top, grid.height, row, i, down);
    for (int k = 0; k < across; ++k) {
      const float x = sample_place(grid.left, grid.width, column, k, across);
      for (const Tap& tap : sample_at(y, x, height, width, width)) {
        if (is_set(tap.pixel)) sum += tap.weight;
      }
    }
  }
  return sum / static_cast<float>(std::max(down * across, 1));
}

}  // namespace dtrain::backend
