// Images as bytes, with what is left to do to them: a place to take from, mirroring, a square to cut out, and a scale.
// pixel_value() is all the arithmetic there is, wherever it is done, so that bytes and the floats made of them give the
// same bits.
#pragma once

#include <cstdint>

namespace dtrain::nn {

// Rows top to top + side - 1 of the network's image, and columns likewise, as far as they lie in it. side 0: nothing.
struct PixelSquare {
  std::int32_t top = 0, left = 0, side = 0;
};

constexpr bool covers(const PixelSquare& square, std::int32_t y, std::int32_t x) {
  return y >= square.top && y < square.top + square.side && x >= square.left && x < square.left + square.side;
}

// Row y and column x of the network's image are row y + top and column x + left of the stored one, `fill` outside of
// it. mirrored: columns are counted from the network's last one. What the square covers is 0, with the scale applied.
struct PixelPlace {
  std::int32_t top = 0, left = 0;
  std::int32_t mirrored = 0;
  PixelSquare cutout = {};
};

struct PixelScale {
  float mean[3] = {};  // subtracted
  float std[3] = {1, 1, 1};
  float fill = 0;  // as bytes are, 0 to 255
};

// n images of 1 or 3 channels, borrowed.
struct Pixels {
  const std::uint8_t* bytes = nullptr;  // [n, rows, columns, c]; null: there are none
  const PixelPlace* places = nullptr;   // [n]
  std::int32_t rows = 0, columns = 0;
  PixelScale scale;
};

// Row y, column x of image n of c channels and `width` columns, as a network takes it.
constexpr float pixel_value(const Pixels& of, std::int64_t n, std::int32_t c, std::int32_t width, std::int32_t y,
                            std::int32_t x, std::int32_t channel) {
  const PixelPlace& place = of.places[n];
  if (covers(place.cutout, y, x)) return 0;
  const std::int32_t row = y + place.top, column = (place.mirrored ? width - 1 - x : x) + place.left;
  const bool inside = row >= 0 && row < of.rows && column >= 0 && column < of.columns;
  const float value = inside ? of.bytes[((n * of.rows + row) * of.columns + column) * c + channel] : of.scale.fill;
  return (value - of.scale.mean[channel]) / of.scale.std[channel];
}

}  // namespace dtrain::nn
