#include <dtrain/base/math.hpp>

#include <cmath>
#include <cstdint>

namespace dtrain {
namespace {

using math_parts::nearest;
using math_parts::polynomial;

constexpr double kHalfPiHigh = 0x1.921fb544p+0;  // 34 bits: n * kHalfPiHigh is exact for |n| < 2^19
constexpr double kHalfPiLow = 0x1.0b4611a626331p-34;

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
