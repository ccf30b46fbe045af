// How a camera was held, from a JPEG's EXIF block.
#pragma once

#include <dtrain/data/image.hpp>

namespace dtrain::data {

// 1 to 8 as in TIFF 6.0's Orientation; 1, upright, where the file does not say, or says nonsense.
int exif_orientation(ByteView jpeg);
// Turns and mirrors the pixels so that the picture stands upright.
void turn_upright(Image& image, int orientation);

}  // namespace dtrain::data
