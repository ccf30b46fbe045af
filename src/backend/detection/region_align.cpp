#include "region_align.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <dtrain/base/math.hpp>

#include "boxes.hpp"

namespace dtrain::backend {
namespace {

// Between two pixels of a row or column.
struct Between {
  int low = 0, high = 0;
  float to_high = 0;  // how far from the low one
  bool outside = false;
};

Between between(float at, int extent) {
  const auto size = static_cast<float>(extent);
  if (!(at >= -1 && at <= size)) return {.outside = true};
  const float inside = std::max(at, 0.0f);
  const int low = static_cast<int>(inside);
  if (low >= extent - 1) return {extent - 1, extent - 1, 0};
  return {low, low + 1, inside - static_cast<float>(low)};
}

// A sample at a point: four pixels with what each counts. Outside the picture none does.
std::array<Tap, 4> sample_at(float y, float x, int height, int width, int row) {
  const Between down = between(y, height), across = between(x, width);
  if (down.outside || across.outside) return {};
  const float below = down.to_high, above = 1 - below, right = across.to_high, left = 1 - right;
  return {Tap{down.low * row + across.low, above * left}, Tap{down.low * row + across.high, above * right},
          Tap{down.high * row + across.low, below * left}, Tap{down.high * row + across.high, below * right}};
}

// Where points begin in a region and how large they are.
struct PointGrid {
  float top, left, height, width;
};

PointGrid grid_of(const nn::Box& region, float scale, int size) {
  const float left = region.left * scale, top = region.top * scale;
  const float width = std::max(region.right * scale - left, 1.0f);
  const float height = std::max(region.bottom * scale - top, 1.0f);
  return {top, left, height / static_cast<float>(size), width / static_cast<float>(size)};
}

}  // namespace

RegionAligner::RegionAligner(const nn::RegionAlign& layer)
    : size_(layer.size),
      row_(nn::extent_of(layer.levels).width),
      places_(nn::level_places(layer.levels)),
      levels_(region_levels(layer)) {}

std::size_t RegionAligner::level_of(const nn::Box& region) const {
  const auto side = static_cast<float>(portable_sqrt(static_cast<double>(area_of(region))));
  std::size_t level = 0;
  while (level + 1 < levels_.size() && side >= levels_[level + 1].from_side) ++level;
  return level;
}

void RegionAligner::taps_of(const nn::Box& region, std::span<Tap> taps) const {
  std::ranges::fill(taps, Tap{});
  if (!(area_of(region) > 0)) return;
  constexpr int kSamples = 2;
  const std::size_t level = level_of(region);
  const nn::LevelPlace& place = places_[level];
  const PointGrid grid = grid_of(region, levels_[level].scale, size_);
  auto to = taps.begin();
  for (int point = 0; point < points(); ++point) {
    for (int sample = 0; sample < kSamples * kSamples; ++sample) {
      const auto at = [&](float begin, float step, int index, int which) {
        return begin + static_cast<float>(index) * step +
               (static_cast<float>(which) + 0.5f) * step / static_cast<float>(kSamples);
      };
      const float y = at(grid.top, grid.height, point / size_, sample / kSamples);
      const float x = at(grid.left, grid.width, point % size_, sample % kSamples);
      for (const Tap& tap : sample_at(y, x, place.height, place.width, row_)) {
        *to++ = {place.top * row_ + place.left + tap.pixel, tap.weight / (kSamples * kSamples)};
      }
    }
  }
}

std::vector<float> mask_in_region(std::span<const std::uint8_t> mask, int height, int width, const nn::Box& region,
                                  int size) {
  const PointGrid grid = grid_of(region, 1, size);
  const int down = static_cast<int>(std::ceil(grid.height)), across = static_cast<int>(std::ceil(grid.width));
  std::vector<float> points;
  for (int point = 0; point < size * size; ++point) {
    const int row = point / size, column = point % size;
    float sum = 0;
    for (int i = 0; i < down; ++i) {
      const float y = grid.top + static_cast<float>(row) * grid.height +
                      (static_cast<float>(i) + 0.5f) * grid.height / static_cast<float>(down);
      for (int k = 0; k < across; ++k) {
        const float x = grid.left + static_cast<float>(column) * grid.width +
                        (static_cast<float>(k) + 0.5f) * grid.width / static_cast<float>(across);
        for (const Tap& tap : sample_at(y, x, height, width, width)) {
          if (mask[static_cast<std::size_t>(tap.pixel)]) sum += tap.weight;
        }
      }
    }
    points.push_back(sum / static_cast<float>(std::max(down * across, 1)));
  }
  return points;
}

}  // namespace dtrain::backend
