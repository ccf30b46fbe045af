// A drawing as pixels, with smooth edges.
#pragma once

#include <dtrain/data/image.hpp>

#include "drawing.hpp"

namespace dtrain::plot {

inline constexpr double kPixelsAPoint = 2;  // sharp on dense screens and in print

// `scale`: pixels a point. Letters that the built-in font lacks become blanks.
data::Image to_image(const Drawing& drawing, double scale);

}  // namespace dtrain::plot
