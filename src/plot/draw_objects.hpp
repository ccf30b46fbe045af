// Boxes, masks and names over a picture.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <dtrain/data/image.hpp>
#include <dtrain/data/rle.hpp>

namespace dtrain::plot {

struct ShownObject {
  data::PixelBox box = {};
  std::int32_t label = 0;                   // chooses the colour
  std::string text = {};                    // written beside the box: its name, perhaps a score
  bool crowd = false;                       // its box is dashed
  std::span<const std::uint8_t> mask = {};  // rows of 0 and 1, from the corner where boxes are counted from; or empty
  int mask_width = 0;
};

// The part of the picture that the objects are of: its corner, the side of the square that shows one pixel, and what
// the part takes of the picture. Names stay within it.
struct ShownAt {
  int left = 0, top = 0, zoom = 1;
  int height = 0, width = 0;  // 0: all of the picture
};

// `picture` is in colour. Small boxes come over large ones. The colours are those of Okabe and Ito, which colour-blind
// readers can distinguish; with more classes than colours, the names do.
void draw_objects(std::span<const ShownObject> objects, const ShownAt& at, data::Image& picture);

}  // namespace dtrain::plot
