// How a camera was held, from the EXIF block of a picture.
#pragma once

#include <dtrain/data/image.hpp>

namespace dtrain::data {

// 1 to 8 as in TIFF 6.0's Orientation, of a JPEG, PNG or WebP file; 1, upright, where the file does not say, or says
// nonsense, and for other kinds.
int exif_orientation(ByteView file);
// Turns and mirrors the pixels so that the picture stands upright. An orientation other than 1 to 8 counts as 1,
// upright.
void turn_upright(Image& image, int orientation);

}  // namespace dtrain::data
