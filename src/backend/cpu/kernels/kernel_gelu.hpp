// The slope of GELU from tables: without them it takes an exponential and a division.
#pragma once

#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// The slope less a half is odd. From 0 to 6 it is a polynomial around each multiple of 0.4, whose coefficients are one
// table for each power: they interpolate P(x) + x p(x), the normal distribution and its density, at Chebyshev's nodes.
// From 5.8 on it is 1, to 1.2e-7. Where x = (k + u) / kSlopesPerOne with u in [-0.5, 0.5], entry k of table n belongs
// to u^n.
constexpr float kSlopesPerOne = 2.5f;
constexpr int kSlopeDegree = 5, kSlopeEntries = 16;
alignas(64) constexpr float kSlopes[kSlopeDegree + 1][kSlopeEntries] = {
    {0.0f, 0.302729756f, 0.519897819f, 0.617953598f, 0.622674048f, 0.585231841f, 0.545549333f, 0.51960814f,
     0.506941915f, 0.502043724f, 0.500503659f, 0.500104308f, 0.500018239f, 0.500002682f, 0.500000358f, 0.5f},
    {0.319153816f, 0.271046817f, 0.157592207f, 0.0434976816f, -0.024846267f, -0.0431927741f, -0.033681374f,
     -0.0184904952f, -0.00785795413f, -0.00268257782f, -0.000749449187f, -0.000173200548f, -3.33383141e-05f,
     -5.36962261e-06f, -7.26089695e-07f, 0.0f},
    {0.0f, -0.0452500507f, -0.0622927323f, -0.0477232933f, -0.0204465818f, -1.11992006e-06f, 0.00756751606f,
     0.00680894451f, 0.00380870537f, 0.00157906674f, 0.000513888896f, 0.000134832531f, 2.89507225e-05f, 5.13460418e-06f,
     7.56929637e-07f, 0.0f},
    {-0.0170209948f, -0.0114136068f, 0.000217234279f, 0.0082981633f, 0.00871554669f, 0.00460738828f, 0.000750759558f,
     -0.000893747783f, -0.000945468782f, -0.000530281337f, -0.000211277918f, -6.47263951e-05f, -1.57827944e-05f,
     -3.12089287e-06f, -5.06234585e-07f, 0.0f},
    {0.0f, 0.00252389815f, 0.00278346916f, 0.00105369347f, -0.000665038708f, -0.0011398542f, -0.00069796294f,
     -0.000164317564f, 8.02932773e-05f, 0.000101278165f, 5.61647284e-05f, 2.13145613e-05f, 6.11664018e-06f,
     1.3832107e-06f, 2.51926565e-07f, 0.0f},
    {0.000606971153f, 0.000319680548f, -0.000203121715f, -0.000414482813f, -0.000231166312f, 2.59438875e-05f,
     0.000120995275f, 8.07576216e-05f, 2.06354252e-05f, -6.68509938e-06f, -9.06437526e-06f, -4.76013747e-06f,
     -1.67171254e-06f, -4.38966708e-07f, -9.01600501e-08f, 0.0f},
};

template <typename V>
struct WordsOf {
  using type = Words;
};
template <>
struct WordsOf<float> {
  using type = uint32_t;
};

// table[index % kSlopeEntries] of each lane.
inline float entries(const float* table, uint32_t index) { return table[index % kSlopeEntries]; }
inline Register entries(const float* table, Words index) {
  if constexpr (kRegisterLanes == kSlopeEntries) {
    return __builtin_shuffle(load<Register>(table), index);
  } else if constexpr (2 * kRegisterLanes == kSlopeEntries) {
    return __builtin_shuffle(load<Register>(table), load<Register>(table + kRegisterLanes), index);
  } else {
    Register values;
    for (int lane = 0; lane < kRegisterLanes; ++lane) values[lane] = table[index[lane] % kSlopeEntries];
    return values;
  }
}

// To 2e-7: of a float, or of each lane of a register. NaN stays NaN.
template <typename V>
inline V gelu_slope_of(V x) {
  using Bits = WordsOf<V>::type;
  const Bits sign = __builtin_bit_cast(Bits, x) & 0x80000000u;
  const V scaled = __builtin_bit_cast(V, __builtin_bit_cast(Bits, x) ^ sign) * kSlopesPerOne;
  const V last = V{} + (kSlopeEntries - 1.0f), limited = scaled > last ? last : scaled;
  const V magic = V{} + 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer, kept in the low bits
  const V shifted = limited + magic, u = limited - (shifted - magic);
  const Bits entry = __builtin_bit_cast(Bits, shifted);
  V p = entries(kSlopes[kSlopeDegree], entry);
  for (int power = kSlopeDegree - 1; power >= 0; --power) p = p * u + entries(kSlopes[power], entry);
  return 0.5f + __builtin_bit_cast(V, __builtin_bit_cast(Bits, p) ^ sign);
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
