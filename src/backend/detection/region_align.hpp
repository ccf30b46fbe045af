// Where a region's points lie in a feature pyramid (nn::RegionAlign), computed in float32 as torchvision does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/backend/detection.hpp>
#include <dtrain/nn/detection.hpp>
#include <dtrain/nn/objects.hpp>

#include "tap.hpp"

namespace dtrain::backend {

constexpr int kTaps = 16;  // of a point: four samples between four pixels each

class RegionAligner {
 public:
  explicit RegionAligner(const nn::RegionAlign& layer);
  int points() const { return size_ * size_; }
  // Writes kTaps for each point of the region, row after row; a region without an area has weights of 0 alone.
  void taps_of(const nn::Box& region, std::span<Tap> taps) const;
  // The first pixel of each point of region `index` in a result whose regions lie apart.
  std::int64_t pixel_apart(std::int64_t index, std::int64_t point) const { return index * (size_ + 1) * size_ + point; }

 private:
  std::size_t level_of(const nn::Box& region) const;
  int size_, row_;
  std::vector<nn::LevelPlace> places_;
  std::vector<RegionLevel> levels_;  // that are used
};

// A picture's mask of an object within a region, as `size` x `size` points, each the mean over as many samples as the
// points are pixels wide and high. `mask`: [height, width] of 0 and 1.
std::vector<float> mask_in_region(std::span<const std::uint8_t> mask, int height, int width, const nn::Box& region,
                                  int size);

}  // namespace dtrain::backend
