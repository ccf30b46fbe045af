// Shear, translation and rotation of a picture of bytes, as Pillow's affine transform to the nearest pixel does it.
#pragma once

#include "picture_changes.hpp"

namespace dtrain::data {

// Where a pixel of the result comes from: x' = xx*x + xy*y + x0, y' = yx*x + yy*y + y0, of the middles of pixels.
struct Move {
  double xx = 1, xy = 0, x0 = 0;
  double yx = 0, yy = 1, y0 = 0;
};
Move sheared(double by_x, double by_y);
Move translated(int by_x, int by_y);
Move rotated(double degrees, int h, int w);  // about the middle

void move(const Move& move, std::uint8_t fill, PlanarPicture& picture, std::vector<std::uint8_t>& scratch);

}  // namespace dtrain::data
