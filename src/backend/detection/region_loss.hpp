// What the heads of a two-stage detector are worth on one picture: nn::RegionLoss, computed in double on this CPU, for
// the backends of the host. Any thread.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "regions.hpp"

namespace dtrain::backend {

// The inputs of nn::RegionLoss but its regions, or their gradients. `masks` has no values where there are none.
template <typename Value>
struct RegionHeads {
  Heads<Value> anchors, regions;
  HeadValues<Value> masks;
};

struct RegionLosses {
  double objectness = 0, anchor_boxes = 0, classes = 0, boxes = 0, masks = 0;
  // In the order of nn::loss_parts(), whose last one a detector of boxes alone lacks.
  std::array<double, 5> parts() const { return {objectness, anchor_boxes, classes, boxes, masks}; }
  double sum() const { return objectness + anchor_boxes + classes + boxes + masks; }
  RegionLosses& operator+=(const RegionLosses& other);
};

struct LossRegions {
  std::span<const Region> all, found;
  int mask_rows = 0;  // from one region's mask to the next
};

// Adds to the gradients by the heads; without values in gradients.anchors.classes only the loss is computed.
RegionLosses region_loss(const nn::RegionLoss& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                         const RegionHeads<const float>& heads, const LossRegions& regions, const RegionDraw& draw,
                         const RegionHeads<float>& gradients);

}  // namespace dtrain::backend
