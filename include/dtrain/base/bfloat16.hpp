// bfloat16: the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain {

using bfloat16_bits = std::uint16_t;

constexpr float from_bfloat16(bfloat16_bits bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// Round to nearest, ties to even; NaN stays NaN.
constexpr bfloat16_bits to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bfloat16_bits>((bits >> 16) | 0x40u);
  return static_cast<bfloat16_bits>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace dtrain
