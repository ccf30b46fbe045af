// One picture of the shapes set.
#pragma once

#include <dtrain/base/random.hpp>
#include <dtrain/data/image.hpp>

#include "outlines.hpp"

namespace dtrain::data {

inline constexpr int kShapesSide = 32;

// Draws the shape of the label with everything random: place, size, turn, stretch, colours, background, things in front
// and behind, blur of its edge, light, noise. The picture is a pure function of its arguments, on every CPU.
Image draw_shape(const Outlines& outlines, std::size_t label, RandomStream random);

}  // namespace dtrain::data
