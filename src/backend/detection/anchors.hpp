// The anchors of a detector, and where the values of each lie.
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
};
AnchorSet anchors_of(const nn::DetectionLoss& layer);
AnchorSet anchors_of(const nn::Proposals& layer);
AnchorSet anchors_of(const nn::RegionLoss& layer);  // those of the proposals

}  // namespace dtrain::backend
