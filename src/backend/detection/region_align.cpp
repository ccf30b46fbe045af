#include "region_align.hpp"

#include <algorithm>

#include <dtrain/base/math.hpp>

#include "region_points.hpp"

namespace dtrain::backend {

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
  const std::size_t level = level_of(region);
  const nn::LevelPlace& place = places_[level];
  const PointGrid grid = grid_of(region, levels_[level].scale, size_);
  constexpr int kSamples = kRegionSamples;
  auto to = taps.begin();
  for (int point = 0; point < points(); ++point) {
    for (int sample = 0; sample < kSamples * kSamples; ++sample) {
      const float y = sample_place(grid.top, grid.height, point / size_, sample / kSamples, kSamples);
      const float x = sample_place(grid.left, grid.width, point % size_, sample % kSamples, kSamples);
      for (const Tap& tap : sample_at(y, x, place.height, place.width, row_)) {
        *to++ = {place.top * row_ + place.left + tap.pixel, tap.weight / (kSamples * kSamples)};
      }
    }
  }
}

std::vector<float> mask_in_region(std::span<const std::uint8_t> mask, int height, int width, const nn::Box& region,
                                  int size) {
  const PointGrid grid = grid_of(region, 1, size);
  std::vector<float> points;
  for (int point = 0; point < size * size; ++point) {
    points.push_back(mask_point(grid, point / size, point % size, height, width,
                                [&](int pixel) { return mask[static_cast<std::size_t>(pixel)] != 0; }));
  }
  return points;
}

}  // namespace dtrain::backend
