// float16 (IEEE 754 binary16): 5 bits of exponent, 10 of fraction. Exact in both directions, by whole numbers and two
// float32 operations, the same on every processor.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain {

using float16_bits = std::uint16_t;

constexpr float from_float16(float16_bits bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return std::bit_cast<float>(sign | 0x7f800000u | rest);  // infinity, NaN
  // The exponents' biases are 112 apart; what is too small for float16's own exponents comes out right, too.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * 0x1p112f));
}

// Round to nearest, ties to even; from 65520 on to infinity; NaN stays NaN.
constexpr float16_bits to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, rest = bits & 0x7fffffffu;
  std::uint32_t result = 0;
  if (rest > 0x7f800000u) {
    result = 0x7e00u | ((rest >> 13) & 0x3ffu);
  } else if (rest >= 0x477ff000u) {
    result = 0x7c00u;
  } else if (rest < 0x38800000u) {
    // Below 2^-14 float16 counts in units of 2^-24, as float32 does next to 0.5: that addition rounds.
    result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  } else {
    result = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  }
  return static_cast<float16_bits>(sign | result);
}

}  // namespace dtrain
