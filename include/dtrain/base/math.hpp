// Transcendentals as own polynomials in double: glibc picks other code (other last bits) on other CPUs, and what feeds
// weights must not. Relative error below 1e-13 in the stated range.
#pragma once

#include <bit>
#include <cstdint>

namespace dtrain {

// What the functions below are made of.
namespace math_parts {

constexpr double kLn2High = 0x1.62e42fefa38p-1;  // trailing zeros: n * kLn2High is exact for |n| < 2^11
constexpr double kLn2Low = 0x1.ef35793c7673p-45;

// To the nearest integer, ties to even, for |x| < 2^51: the sum has no bits left for a fraction. Without a call into
// libm.
constexpr double nearest(double x) {
  constexpr double no_fraction = 0x1.8p52;
  return (x + no_fraction) - no_fraction;
}

// 2^n for -1022 <= n <= 1023.
constexpr double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// Sums coefficient[k] * x^k by Horner's rule.
template <int N>
constexpr double polynomial(const double (&coefficient)[N], double x) {
  double sum = coefficient[N - 1];
  for (int k = N - 2; k >= 0; --k) sum = sum * x + coefficient[k];
  return sum;
}

}  // namespace math_parts

// exp and log stand in the header for the sake of backends that compute them elsewhere than on this CPU.
// |x| <= 700
constexpr double portable_exp(double x) {
  using namespace math_parts;
  const double n = nearest(x / (kLn2High + kLn2Low));
  const double rest = (x - n * kLn2High) - n * kLn2Low;  // |rest| <= ln2 / 2
  constexpr double c[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,         1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600.0, 1.0 / 6227020800.0};
  return polynomial(c, rest) * power_of_two(static_cast<int>(n));
}

// x > 0
constexpr double portable_log(double x) {
  using namespace math_parts;
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;  // subnormal
    exponent = -54;
  }
  // x = 2^exponent * mantissa with sqrt(1/2) <= mantissa < sqrt(2), by integer arithmetic on the bits
  constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
  constexpr std::uint64_t exponent_mask = 0xfff0000000000000;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t shift = (bits - sqrt_half) & exponent_mask;
  exponent += static_cast<int>(static_cast<std::int64_t>(shift) >> 52);
  const auto mantissa = std::bit_cast<double>(bits - shift);
  // log(m) = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.172
  const double s = (mantissa - 1) / (mantissa + 1);
  constexpr double c[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                          2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  return exponent * kLn2High + (exponent * kLn2Low + s * polynomial(c, s * s));
}

double portable_cos(double x);  // |x| <= 1e5
double portable_sin(double x);  // |x| <= 1e5

// The point on the unit circle after so many full turns: cos and sin of 2 pi * turns. |turns| <= 1e15; turns that are
// exact in binary lose nothing to the reduction.
struct TurnPoint {
  double x = 1, y = 0;
};
TurnPoint portable_turn(double turns);

double portable_sqrt(double x);                     // IEEE square root
double portable_pow(double base, double exponent);  // base > 0

}  // namespace dtrain
