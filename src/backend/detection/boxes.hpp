// Boxes in float32, operation by operation as torchvision computes them.
#pragma once

#include <array>

#include <dtrain/nn/objects.hpp>

namespace dtrain::backend {

inline float area_of(const nn::Box& box) { return (box.right - box.left) * (box.bottom - box.top); }

// Intersection over union, in [0, 1].
float overlap_of(const nn::Box& a, const nn::Box& b);

// What moves and scales an anchor to a box: the shift of the centre in the anchor's sizes, and the logarithm of the
// ratio of the sizes; across, then down. Both boxes have an area.
using BoxCode = std::array<float, 4>;
BoxCode encode_box(const nn::Box& anchor, const nn::Box& box);
// The codes of regions are numbers times 10 across and down, and times 5 for the sizes.
BoxCode encode_region(const nn::Box& region, const nn::Box& box);
nn::Box decode_region(const nn::Box& region, const BoxCode& code);
// A box is at most 62.5 times as large as its anchor.
nn::Box decode_box(const nn::Box& anchor, const BoxCode& code);

// Cut off at the edges of a picture that begins at 0, 0.
nn::Box clipped(const nn::Box& box, int height, int width);

}  // namespace dtrain::backend
