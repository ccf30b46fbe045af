// What the results of detectors are computed with: anchors, where the values of each lie, and fixed numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/nn/detection.hpp>
#include <dtrain/nn/objects.hpp>

namespace dtrain::backend {

// Level after level, row after row, pixel after pixel.
struct AnchorSet {
  std::int64_t at_pixel = 0;  // anchors
  std::vector<nn::Box> boxes;
  std::vector<std::int32_t> pixels;        // of each location: its number in the value that holds all levels
  std::vector<std::int64_t> level_begins;  // in anchors; one more than there are levels
  struct Step {
    int y = 0, x = 0;
  };
  std::vector<Step> steps;  // of each level: from one location to the next, in pixels of the image
};
AnchorSet anchors_of(const nn::DetectionLoss& layer);
AnchorSet anchors_of(const nn::Proposals& layer);
AnchorSet anchors_of(const nn::RegionLoss& layer);  // those of the proposals

constexpr double kMostGrowth = 4.135166556742356;     // log(1000 / 16): of a box's width or height by its anchor's
constexpr float kCentreFactor = 10, kSizeFactor = 5;  // of the numbers in the codes of regions
constexpr float kSmallestRegion = 1e-3f;              // pixels along each side of a proposal
constexpr float kSmallestObject = 1e-2f;              // the same of what a region shows

// A level in which regions are looked up. A region's side is the square root of its area.
struct RegionLevel {
  float scale = 1;      // pixels of the level per pixel of the image
  float from_side = 0;  // pixels; regions from there on are looked up in this level or a later one
};
std::vector<RegionLevel> region_levels(const nn::RegionAlign& layer);

}  // namespace dtrain::backend
