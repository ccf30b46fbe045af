// HSL jitter as OpenCV's 8-bit HLS defines it: hue 0..180, lightness and saturation 0..255, whole numbers at every
// stage.
#pragma once

#include <cstddef>

namespace dtrain::data {

struct HslShift {
  int h = 0, s = 0, l = 0;
};

// Shifts `count` pixels in place. The planes hold whole numbers 0..255 and do so afterwards. Every rounding is of an
// exact fraction, halves upwards, so the result equals integer arithmetic on any CPU.
void shift_hsl(float* r, float* g, float* b, std::size_t count, const HslShift& shift);
// The same for one plane of greys: saturation and hue have no meaning there.
void shift_lightness(float* grey, std::size_t count, const HslShift& shift);

}  // namespace dtrain::data
