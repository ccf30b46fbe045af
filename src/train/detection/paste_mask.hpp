// A mask of few points at the size of its box, as torchvision's paste_masks_in_image() makes it.
#pragma once

#include <span>

#include <dtrain/data/rle.hpp>
#include <dtrain/nn/objects.hpp>

namespace dtrain::train {

// `likely`: side x side numbers that fill `box`, row by row. The box is in pixels of a picture of h x w, of which the
// mask has those where the numbers, as interpolated, are above 0.5. What lies outside of the picture is left out.
data::Rle paste_mask(std::span<const float> likely, int side, const nn::Box& box, int h, int w);

}  // namespace dtrain::train
