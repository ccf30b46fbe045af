// The operations that AutoAugment and its successors draw from (Cubuk et al., "AutoAugment", CVPR 2019), on pictures of
// bytes, with the results of Pillow, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain::data {

// Bytes [c, h, w]; 1 or 3 channels.
struct PlanarPicture {
  int c = 0, h = 0, w = 0;
  std::vector<std::uint8_t> pixels;
  std::size_t plane_size() const { return static_cast<std::size_t>(h) * static_cast<std::size_t>(w); }
  std::uint8_t* plane(int channel) { return pixels.data() + static_cast<std::size_t>(channel) * plane_size(); }
};

enum class Operation {
  identity,
  shear_x,        // amount: pixels to the side for each pixel down
  shear_y,        // amount: pixels down for each pixel to the side
  translate_x,    // amount: whole pixels to the right
  translate_y,    // amount: whole pixels down
  rotate,         // amount: degrees against the clock
  brightness,     // amount: 0 is the picture, -1 is black
  color,          // amount: 0 is the picture, -1 is its greys
  contrast,       // amount: 0 is the picture, -1 is its mean grey
  sharpness,      // amount: 0 is the picture, -1 is a smoothed one
  posterize,      // amount: bits of a byte that stay
  solarize,       // amount: bytes from there on are inverted
  auto_contrast,  // each channel is stretched to 0..255
  equalize,       // each channel's values become equally frequent
  invert          // each byte is taken from 255
};

// `fill`: the byte of what a shear, translation or rotation uncovers. `scratch` is memory to use again.
void apply(Operation operation, double amount, std::uint8_t fill, PlanarPicture& picture,
           std::vector<std::uint8_t>& scratch);

}  // namespace dtrain::data
