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

double nearest(double x) { return std::nearbyint(x); }

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
  return std::ldexp(polynomial(c, rest), static_cast<int>(n));
}

double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // [0.5, 1)
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  // log(m) = 2 atanh(s), s = (m-1)/(m+1), |s| <= 0.172
  const double s = (mantissa - 1) / (mantissa + 1);
  constexpr double c[] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                          2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  return exponent * kLn2High + (exponent * kLn2Low + s * polynomial(c, s * s));
}

double portable_cos(double x) { return cos_from_quarter(x, 0); }
double portable_sin(double x) { return cos_from_quarter(x, 3); }
double portable_sqrt(double x) { return std::sqrt(x); }
double portable_pow(double base, double exponent) { return portable_exp(exponent * portable_log(base)); }

}  // namespace dtrain
