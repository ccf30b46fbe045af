// A drawing as pixels, with smooth edges.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dtrain/data/image.hpp>

#include "drawing.hpp"

namespace dtrain::plot {

inline constexpr double kPixelsAPoint = 2;  // sharp on dense screens and in print

// `scale`: pixels a point. Letters that the built-in font lacks become boxes.
data::Image to_image(const Drawing& drawing, double scale);

// Paints the marks over a picture in colour, where a point is a pixel.
void paint_over(std::span<const Mark> marks, data::Image& picture);

// How wide each text is at this size, in points.
std::vector<double> text_widths(std::span<const std::string> texts, double size);

}  // namespace dtrain::plot
