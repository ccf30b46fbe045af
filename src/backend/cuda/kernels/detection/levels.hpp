// The levels of a feature pyramid in the value that holds them all, and values that are made larger. Tensors are
// [n, h, w, c]; a thread has the channels of one Pack of a pixel of the result.
#pragma once

#include <dtrain/nn/detection.hpp>

#include "../sums.hpp"

namespace dtrain::backend::cuda {

constexpr int kMostLevels = 8;

// Where the levels lie. A kernel has it by value.
struct LevelGrid {
  nn::LevelPlace places[kMostLevels];
  std::int32_t count;
  std::int32_t h, w;  // of the value that holds them
  // The level of a pixel, or -1 between them.
  DTRAIN_KERNEL std::int32_t level_at(std::int32_t y, std::int32_t x) const {
    for (std::int32_t level = 0; level < count; ++level) {
      const nn::LevelPlace& place = places[level];
      const bool inside =
          y >= place.top && y < place.top + place.height && x >= place.left && x < place.left + place.width;
      if (inside) return level;
    }
    return -1;
  }
};

inline LevelGrid level_grid(const nn::Levels& levels) {
  LevelGrid grid{};
  for (const nn::LevelPlace& place : nn::level_places(levels)) grid.places[grid.count++] = place;
  const nn::Extent extent = nn::extent_of(levels);
  grid.h = extent.height, grid.w = extent.width;
  return grid;
}

// Row number `part` of [n, h, w] rows.
struct PixelOfRow {
  std::int64_t sample;
  std::int32_t y, x;
  DTRAIN_KERNEL PixelOfRow(std::int64_t row, std::int32_t h, std::int32_t w) {
    const auto place = static_cast<std::uint32_t>(row), line = place / static_cast<std::uint32_t>(w);
    x = static_cast<std::int32_t>(place - line * static_cast<std::uint32_t>(w));
    sample = line / static_cast<std::uint32_t>(h);
    y = static_cast<std::int32_t>(line - static_cast<std::uint32_t>(sample) * static_cast<std::uint32_t>(h));
  }
};

// y = x within the levels, and 0 between them.
template <typename T>
struct KeepLevelPixels {
  const T* x;
  T* y;
  std::int64_t n;
  std::int32_t c;
  LevelGrid grid;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.h * grid.w * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const PixelOfRow pixel(at.part, grid.h, grid.w);
    at.channels.store(grid.level_at(pixel.y, pixel.x) >= 0 ? at.channels.load(x, at.part) : Pack<T>{}, y, at.part);
  }
};

// Each level at its place in y, and 0 between them.
template <typename T>
struct JoinLevels {
  const T* levels[kMostLevels];
  T* y;
  std::int64_t n;
  std::int32_t c;
  LevelGrid grid;
  DTRAIN_KERNEL std::int64_t threads() const { return n * grid.h * grid.w * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const PixelOfRow pixel(at.part, grid.h, grid.w);
    const std::int32_t level = grid.level_at(pixel.y, pixel.x);
    if (level < 0) return at.channels.store(Pack<T>{}, y, at.part);
    const nn::LevelPlace& place = grid.places[level];
    const std::int64_t row = (pixel.sample * place.height + pixel.y - place.top) * place.width + pixel.x - place.left;
    at.channels.store(at.channels.load(levels[level], row), y, at.part);
  }
};

// One level of a value that holds them all.
template <typename T>
struct TakeLevel {
  const T* whole;
  T* y;
  std::int64_t n;
  std::int32_t c, whole_h, whole_w;
  nn::LevelPlace place;
  DTRAIN_KERNEL std::int64_t threads() const { return n * place.height * place.width * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const PixelOfRow pixel(at.part, place.height, place.width);
    const std::int64_t row = (pixel.sample * whole_h + place.top + pixel.y) * whole_w + place.left + pixel.x;
    at.channels.store(at.channels.load(whole, row), y, at.part);
  }
};

// How rows or columns are taken: pixel k of the larger side is pixel k * from / to of the other one.
struct NearestPixel {
  std::int32_t from, to;
  DTRAIN_KERNEL std::int32_t of(std::int32_t k) const { return static_cast<std::int32_t>(std::int64_t{k} * from / to); }
  // The first one that is taken from pixel k.
  DTRAIN_KERNEL std::int32_t first(std::int32_t k) const {
    return static_cast<std::int32_t>((std::int64_t{k} * to + from - 1) / from);
  }
};

// x [n, h.from, w.from, c], y [n, h.to, w.to, c].
template <typename T>
struct EnlargePixels {
  const T* x;
  T* y;
  std::int64_t n;
  std::int32_t c;
  NearestPixel h, w;
  DTRAIN_KERNEL std::int64_t threads() const { return n * h.to * w.to * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const PixelOfRow pixel(at.part, h.to, w.to);
    const std::int64_t row = (pixel.sample * h.from + h.of(pixel.y)) * w.from + w.of(pixel.x);
    at.channels.store(at.channels.load(x, row), y, at.part);
  }
};

// The sums of dy over the pixels that one of x was taken for, in the order of rows.
template <typename T>
struct EnlargePixelsGradient {
  const T* dy;
  T* dx;
  std::int64_t n;
  std::int32_t c;
  NearestPixel h, w;
  DTRAIN_KERNEL std::int64_t threads() const { return n * h.from * w.from * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const PixelOfRow pixel(at.part, h.from, w.from);
    float sums[Pack<T>::size] = {};
    for (std::int32_t y = h.first(pixel.y); y < h.first(pixel.y + 1); ++y) {
      for (std::int32_t x = w.first(pixel.x); x < w.first(pixel.x + 1); ++x) {
        const Pack<T> more = at.channels.load(dy, (pixel.sample * h.to + y) * w.to + x);
        DTRAIN_UNROLL
        for (int k = 0; k < Pack<T>::size; ++k) sums[k] += widen(more.values[k]);
      }
    }
    store_narrow(at.channels, sums, dx, at.part);
  }
};

// y = x, and 0 in the rows between regions of `side` rows.
template <typename T>
struct KeepRegionPixels {
  const T* x;
  T* y;
  std::int64_t n;
  std::int32_t c, h, w, side;
  DTRAIN_KERNEL std::int64_t threads() const { return n * h * w * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const bool is_kept = PixelOfRow(at.part, h, w).y % (side + 1) != side;
    at.channels.store(is_kept ? at.channels.load(x, at.part) : Pack<T>{}, y, at.part);
  }
};

}  // namespace dtrain::backend::cuda
