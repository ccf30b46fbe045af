#include <dtrain/base/math.hpp>

#include <bit>
#include <cmath>
#include <cstdint>

namespace dtrain {
namespace {

constexpr double kLn2High = 0x1.62e42fefa38p-1;  // trailing zeros: n * kLn2High is exact for |n| < 2^11
constexpr double kLn2Low = 0x1.ef35793c7673p-45;
constexpr double kHalfPiHigh = 0x1.921fb544p+0;  // 34 bits: n * kHalfPiHigh is exact for |n| < 2^19
constexpr double kHalfPiLow = 0x1.0b4611a626331p-34;

// To the nearest integer, ties to even, for |x| < 2^51: the sum has no bits left for a fraction. Without a call into
// libm.
double nearest(double x) {
  constexpr double no_fraction = 0x1.8p52;
  return (x + no_fraction) - no_fraction;
}

// 2^n for -1022 <= n <= 1023.
double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// Sums coefficient[k] * x^k by Horner's rule.
template <int N>
double polynomial(const double (&coefficient)[N], double x) {
  double sum = coefficient[N - 1];
  for (int k = N - 2; k >= 0; --k) sum = sum * x + coefficient[k];
  return sum;
}

double sin_near_zero(double x) {
  constexpr double c[] = {1.0,          -1.0 / 6,        1.0 / 120,          -1.0 / 5040,
                          1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0};
  return x * polynomial(c, x * x);
}

double cos_near_zero(double x) {
  constexpr double c[] = {1.0,
                          -1.0 / 2,
                          1.0 / 24,
                          -1.0 / 720,
                          1.0 / 40320,
                          -1.0 / 3628800,
                          1.0 / 479001600.0,
                          -1.0 / 87178291200.0,
                          1.0 / 20922789888000.0};
  return polynomial(c, x * x);
}

// cos(x + quarters * pi/2)
double cos_from_quarter(double x, int quarters) {
  const double n = nearest(x / (kHalfPiHigh + kHalfPiLow));
  const double rest = (x - n * kHalfPiHigh) - n * kHalfPiLow;
  switch ((static_cast<std::int64_t>(n) + quarters) & 3) {
    case 0:
      return cos_near_zero(rest);
    case 1:
      return -sin_near_zero(rest);
    case 2:
      return -cos_near_zero(rest);
    default:
      return sin_near_zero(rest);
  }
}

}  // namespace

double portable_exp(double x) {
  const double n = nearest(x / (kLn2High + kLn2Low));
  const double rest = (x - n * kLn2High) - n * kLn2Low;  // |rest| <= ln2 / 2
  constexpr double c[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,         1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600.0, 1.0 / 6227020800.0};
  return polynomial(c, rest) * power_of_two(static_cast<int>(n));
}

double portable_log(double x) {
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

TurnPoint portable_turn(double turns) {
  const double quarters = nearest(4 * turns);
  const double rest = (turns - 0.25 * quarters) * 6.283185307179586;  // |rest| <= pi/4
  // Tables, not branches: which quarter comes next is random, and a branch would be guessed wrong every other time.
  const double along[2] = {cos_near_zero(rest), sin_near_zero(rest)};
  constexpr double sign_x[4] = {1, -1, -1, 1}, sign_y[4] = {1, 1, -1, -1};
  const auto quarter = static_cast<std::size_t>(static_cast<std::int64_t>(quarters) & 3);
  return {sign_x[quarter] * along[quarter & 1], sign_y[quarter] * along[~quarter & 1]};
}

double portable_cos(double x) { return cos_from_quarter(x, 0); }
double portable_sin(double x) { return cos_from_quarter(x, 3); }
double portable_sqrt(double x) { return std::sqrt(x); }
double portable_pow(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

}  // namespace dtrain
