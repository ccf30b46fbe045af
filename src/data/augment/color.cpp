#include "color.hpp"

namespace dtrain::data {
namespace {

// Selections and conversions that compilers turn into one vector instruction each.
inline float smaller(float a, float b) { return a < b ? a : b; }
inline float larger(float a, float b) { return a > b ? a : b; }
inline float clamped(float value, float high) { return smaller(larger(value, 0.0f), high); }
inline float whole(float value) { return static_cast<float>(static_cast<int>(value)); }

struct Hls {
  float h, l, s;
};

// Numerators and denominators are whole numbers below 2^24: exact in float. Quotients are at most 255 and their
// denominators at most 510, so a quotient that is no whole number is further from one than its rounding error.
inline Hls to_hls(float r, float g, float b) {
  const float high = larger(larger(r, g), b), low = smaller(smaller(r, g), b);
  const float sum = high + low, chroma = high - low;
  const float range = larger(sum < 255.0f ? sum : 510.0f - sum, 1.0f);
  const float divisor = larger(chroma, 1.0f);
  const float red_hue = g < b ? 180.0f : 0.0f;
  const float side = high == r ? g - b : (high == g ? b - r : r - g);
  const float sector = high == r ? red_hue : (high == g ? 60.0f : 120.0f);
  return {whole((30.0f * side + (sector + 0.5f) * divisor) / divisor), whole(sum * 0.5f + 0.5f),
          whole((255.0f * chroma + 0.5f * range) / range)};
}

// lightness - amplitude * wave(hue), the wave being a trapezium of 180 units that is -1 around the channel's own hue
// and 1 opposite to it. 3825 = 255 * 15 makes it a whole number; as 3825 is odd there are no halves to round.
inline float channel(const Hls& color, float amplitude, float hue) {
  const float position = hue >= 180.0f ? hue - 180.0f : hue;
  const float wave = larger(smaller(smaller(position - 45.0f, 135.0f - position), 15.0f), -15.0f);
  return whole((color.l * 3825.0f - amplitude * wave + 1912.5f) * (1.0f / 3825.0f));
}

}  // namespace

void shift_hsl(float* __restrict r, float* __restrict g, float* __restrict b, std::size_t count,
               const HslShift& shift) {
  const float shift_h = static_cast<float>(shift.h), shift_l = static_cast<float>(shift.l),
              shift_s = static_cast<float>(shift.s);
  for (std::size_t i = 0; i < count; ++i) {
    Hls color = to_hls(r[i], g[i], b[i]);
    color.h = clamped(color.h + shift_h, 180.0f);
    color.l = clamped(color.l + shift_l, 255.0f);
    color.s = clamped(color.s + shift_s, 255.0f);
    const float amplitude = color.s * smaller(color.l, 255.0f - color.l);
    r[i] = channel(color, amplitude, color.h);
    g[i] = channel(color, amplitude, color.h + 120.0f);
    b[i] = channel(color, amplitude, color.h + 60.0f);
  }
}

void shift_lightness(float* grey, std::size_t count, const HslShift& shift) {
  const float shift_l = static_cast<float>(shift.l);
  for (std::size_t i = 0; i < count; ++i) grey[i] = clamped(grey[i] + shift_l, 255.0f);
}

}  // namespace dtrain::data
