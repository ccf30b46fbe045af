// What a feature pyramid shows in regions: nn::RegionAlign, both ways. Where the samples of a region lie is computed
// once for each side; what a pixel counts in a point is the product of what it counts along both.
#pragma once

#include <cmath>

#include "../../../detection/region_points.hpp"
#include "propose.hpp"

namespace dtrain::backend::cuda {

// A sample between two rows or columns of the value that holds all levels. Outside, and in a region without an area,
// it counts nothing.
struct AxisTap {
  std::int32_t low, high;
  float of_low, of_high;
  DTRAIN_KERNEL bool counts() const { return of_low != 0 || of_high != 0; }
};

// Pixels from the first to the last that some sample of a region touches; empty: none.
struct PixelSpan {
  std::int32_t top, bottom, left, right;
};

struct AlignGrid {
  LevelGrid levels;
  float scales[kMostLevels], from_sides[kMostLevels];                           // see RegionLevel
  std::int32_t used;                                                            // levels
  std::int32_t regions, side;                                                   // points along each side of a region
  bool apart;                                                                   // see nn::RegionAlign
  DTRAIN_KERNEL std::int32_t samples() const { return side * kRegionSamples; }  // along a side
  DTRAIN_KERNEL std::int32_t points() const { return side * side; }
  DTRAIN_KERNEL std::int32_t pixels() const { return apart ? (regions * (side + 1) - 1) * side : regions * points(); }
  DTRAIN_KERNEL std::int32_t row_of_region() const { return apart ? side + 1 : side; }  // points in steps of a side
  // Of the samples of a region: [n][region][down, across][sample].
  DTRAIN_KERNEL std::int64_t first_tap(std::int64_t region_of_all, std::int32_t axis) const {
    return (region_of_all * 2 + axis) * samples();
  }
  // Where channel `first` of a point lies in the value of the regions. The next channel is the next value where they
  // lie apart, else points() further.
  DTRAIN_KERNEL std::int64_t place(std::int64_t sample, std::int32_t region, std::int32_t point, std::int32_t c,
                                   std::int64_t first) const {
    if (apart) return (sample * pixels() + std::int64_t{region} * (side + 1) * side + point) * c + first;
    return (sample * regions + region) * (std::int64_t{c} * points()) + first * points() + point;
  }
};

inline AlignGrid align_grid(const nn::RegionAlign& layer, int regions) {
  AlignGrid grid{};
  grid.levels = level_grid(layer.levels);
  grid.used = layer.used;
  const std::vector<RegionLevel> levels = region_levels(layer);
  for (std::size_t level = 0; level < levels.size(); ++level) {
    grid.scales[level] = levels[level].scale;
    grid.from_sides[level] = levels[level].from_side;
  }
  grid.regions = regions, grid.side = layer.size, grid.apart = layer.apart;
  return grid;
}

// Thread = sample of a side of a region.
struct FindTaps {
  const float* rows;  // [n][regions]
  AxisTap* taps;
  AlignGrid grid;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.regions * 2 * grid.samples(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const auto sample = static_cast<std::int32_t>(i % grid.samples());
    const std::int64_t side = i / grid.samples();
    const nn::Box box = read_region(rows, side / 2).box;
    taps[i] = {0, 0, 0, 0};
    if (!(area_of(box) > 0)) return;
    const std::int32_t level = level_of(box);
    const nn::LevelPlace& place = grid.levels.places[level];
    const PointGrid points = grid_of(box, grid.scales[level], grid.side);
    const bool is_down = side % 2 == 0;
    const float at = sample_place(is_down ? points.top : points.left, is_down ? points.height : points.width,
                                  sample / kRegionSamples, sample % kRegionSamples, kRegionSamples);
    const Between found = between(at, is_down ? place.height : place.width);
    const std::int32_t first = is_down ? place.top : place.left;
    if (!found.outside) taps[i] = {first + found.low, first + found.high, 1 - found.to_high, found.to_high};
  }

 private:
  DTRAIN_KERNEL std::int32_t level_of(const nn::Box& box) const {
    const auto side = static_cast<float>(sqrt(static_cast<double>(area_of(box))));
    std::int32_t level = 0;
    while (level + 1 < grid.used && side >= grid.from_sides[level + 1]) ++level;
    return level;
  }
};

// y is the value of the regions. Thread = Pack of the channels of a pixel of it, or of a point of a region.
template <typename T>
struct AlignRegions {
  const T* x;  // [n, h, w, c]
  const AxisTap* taps;
  T* y;
  AlignGrid grid;
  std::int64_t n;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.pixels() * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const std::int64_t sample = at.part / grid.pixels();
    const auto pixel = static_cast<std::int32_t>(at.part % grid.pixels());
    const std::int32_t row = pixel / grid.side, region = row / grid.row_of_region();
    const std::int32_t down = row % grid.row_of_region(), across = pixel % grid.side;
    float sums[Pack<T>::size] = {};
    if (down < grid.side) add(sample, region, down, across, at.channels, sums);
    if (grid.apart) return store_narrow(at.channels, sums, y, at.part);
    T* const to = y + grid.place(sample, region, down * grid.side + across, c, at.channels.first);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (at.channels.first + k < c) narrow(sums[k], to[std::int64_t{k} * grid.points()]);
    }
  }

 private:
  DTRAIN_KERNEL void add(std::int64_t sample, std::int32_t region, std::int32_t down, std::int32_t across,
                         const Channels<T>& channels, float (&sums)[Pack<T>::size]) const {
    constexpr std::int32_t kSamples = kRegionSamples * kRegionSamples;
    const std::int64_t of_all = sample * grid.regions + region;
    for (std::int32_t k = 0; k < kSamples; ++k) {
      const AxisTap y_tap = taps[grid.first_tap(of_all, 0) + down * kRegionSamples + k / kRegionSamples];
      const AxisTap x_tap = taps[grid.first_tap(of_all, 1) + across * kRegionSamples + k % kRegionSamples];
      if (!y_tap.counts() || !x_tap.counts()) continue;
      for (std::int32_t corner = 0; corner < 4; ++corner) {
        const bool low = corner < 2, left = corner % 2 == 0;
        const float weight = (low ? y_tap.of_low : y_tap.of_high) * (left ? x_tap.of_low : x_tap.of_high) / kSamples;
        const std::int64_t pixel =
            (sample * grid.levels.h + (low ? y_tap.low : y_tap.high)) * grid.levels.w + (left ? x_tap.low : x_tap.high);
        const Pack<T> pack = channels.load(x, pixel);
        DTRAIN_UNROLL
        for (int j = 0; j < Pack<T>::size; ++j) sums[j] += weight * widen(pack.values[j]);
      }
    }
  }
};

// Thread = region.
struct FindSpans {
  const AxisTap* taps;
  PixelSpan* spans;
  AlignGrid grid;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.regions; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const Side down = side_of(taps + grid.first_tap(i, 0)), across = side_of(taps + grid.first_tap(i, 1));
    spans[i] = {down.first, down.last, across.first, across.last};
  }

 private:
  struct Side {
    std::int32_t first, last;
  };
  DTRAIN_KERNEL Side side_of(const AxisTap* of) const {
    Side side{0, -1};
    for (std::int32_t k = 0; k < grid.samples(); ++k) {
      if (!of[k].counts()) continue;
      if (side.last < 0) side.first = of[k].low;
      side.last = of[k].high;
    }
    return side;
  }
};

// The regions that touch a row of pixels, in their order: [n][h][number, regions...]. Thread = row.
struct ListRegions {
  const PixelSpan* spans;
  std::int32_t* lists;
  AlignGrid grid;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.levels.h; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / grid.levels.h;
    const auto y = static_cast<std::int32_t>(i % grid.levels.h);
    std::int32_t* const list = lists + i * (grid.regions + 1);
    std::int32_t number = 0;
    for (std::int32_t region = 0; region < grid.regions; ++region) {
      const PixelSpan span = spans[sample * grid.regions + region];
      if (y >= span.top && y <= span.bottom) list[++number] = region;
    }
    list[0] = number;
  }
};

// The gradient by the value that holds all levels: each pixel adds up what it was in the points of the regions, in
// their order. Thread = Pack of the channels of a pixel.
template <typename T>
struct AlignRegionsGradient {
  const T* dy;
  const AxisTap* taps;
  const PixelSpan* spans;
  const std::int32_t* lists;
  T* dx;
  AlignGrid grid;
  std::int64_t n;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.levels.h * grid.levels.w * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const PixelOfRow pixel(at.part, grid.levels.h, grid.levels.w);
    const std::int32_t* const list = lists + (pixel.sample * grid.levels.h + pixel.y) * (grid.regions + 1);
    float sums[Pack<T>::size] = {};
    for (std::int32_t k = 1; k <= list[0]; ++k) {
      const PixelSpan span = spans[pixel.sample * grid.regions + list[k]];
      if (pixel.x >= span.left && pixel.x <= span.right) add(pixel, list[k], at.channels, sums);
    }
    store_narrow(at.channels, sums, dx, at.part);
  }

 private:
  // What a row or column counts in point `index` of a side.
  DTRAIN_KERNEL static float weight_of(const AxisTap* side, std::int32_t index, std::int32_t pixel) {
    float sum = 0;
    DTRAIN_UNROLL
    for (std::int32_t k = 0; k < kRegionSamples; ++k) {
      const AxisTap tap = side[index * kRegionSamples + k];
      if (tap.low == pixel) sum += tap.of_low;
      if (tap.high == pixel) sum += tap.of_high;
    }
    return sum;
  }
  DTRAIN_KERNEL static void add(float weight, const Pack<T>& values, float (&sums)[Pack<T>::size]) {
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) sums[k] += weight * widen(values.values[k]);
  }
  DTRAIN_KERNEL void add(const PixelOfRow& pixel, std::int32_t region, const Channels<T>& channels,
                         float (&sums)[Pack<T>::size]) const {
    constexpr float kShare = 1.0f / (kRegionSamples * kRegionSamples);
    const std::int64_t of_all = pixel.sample * grid.regions + region;
    const AxisTap *const down = taps + grid.first_tap(of_all, 0), *const across = taps + grid.first_tap(of_all, 1);
    for (std::int32_t row = 0; row < grid.side; ++row) {
      const float of_row = weight_of(down, row, pixel.y) * kShare;
      for (std::int32_t column = 0; column < grid.side && of_row != 0; ++column) {
        const float weight = of_row * weight_of(across, column, pixel.x);
        if (weight == 0) continue;
        const std::int64_t place = grid.place(pixel.sample, region, row * grid.side + column, c, channels.first);
        if (grid.apart) {
          add(weight, channels.load(dy, (place - channels.first) / c), sums);
          continue;
        }
        DTRAIN_UNROLL
        for (int k = 0; k < Pack<T>::size; ++k) {
          if (channels.first + k < c) sums[k] += weight * widen(dy[place + std::int64_t{k} * grid.points()]);
        }
      }
    }
  }
};

}  // namespace dtrain::backend::cuda
