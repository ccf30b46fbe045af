// Curves in float32 as own polynomials, because libm's differ from CPU to CPU. V is a float or a vector of them (GCC's
// extension). Everything here has internal linkage and no header of the standard library comes along: kernels are
// compiled for several instruction sets, and the linker must not keep one set's copy for all.
#pragma once

namespace dtrain::backend {
namespace {

// The same number of integers of the same width.
template <typename V>
struct BitsOf {
  using type = decltype(V{} < V{});
};
template <>
struct BitsOf<float> {
  using type = int;
};
template <typename V>
using Bits = typename BitsOf<V>::type;

// exp(x) for x <= 0 to 2e-7 relative: 2^n * polynomial. Below -87 it is 0, NaN stays NaN.
template <typename V>
constexpr V exp_of_negative(V x) {
  const V clamped = x < V{} - 87.0f ? V{} - 87.0f : x;
  const V magic = V{} + 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer, kept in the low bits
  const V shifted = clamped * 1.44269504f + magic;
  const V n = shifted - magic;
  const V r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  V p = r * (1.0f / 5040) + (1.0f / 720);
  p = p * r + (1.0f / 120);
  p = p * r + (1.0f / 24);
  p = p * r + (1.0f / 6);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const Bits<V> exponent = __builtin_bit_cast(Bits<V>, shifted) - __builtin_bit_cast(Bits<V>, magic) + 127;
  const V value = p * __builtin_bit_cast(V, exponent << 23);
  return x < V{} - 87.0f ? V{} : value;
}

template <typename V>
constexpr V absolute(V x) {
  return __builtin_bit_cast(V, __builtin_bit_cast(Bits<V>, x) & 0x7fffffff);
}

// The share of the normal distribution below x to 2e-7: with z = x / sqrt(2), erf(z) = z * P(z^2) / Q(z^2) up to where
// it is 1 in float32 (the coefficients are those of Eigen's erf). NaN stays NaN.
template <typename V>
constexpr V normal_share(V x) {
  const V z = x * 0.70710678f;
  const V q = z * z;
  V p = q * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * q - 2.10102402082508e-06f;
  p = p * q - 5.69250639462346e-05f;
  p = p * q - 7.34990630326855e-04f;
  p = p * q - 2.95459980854025e-03f;
  p = p * q - 1.60960333262415e-02f;
  V d = q * -1.45660718464996e-05f - 2.13374055278905e-04f;
  d = d * q - 1.68282697438203e-03f;
  d = d * q - 7.37332916720468e-03f;
  d = d * q - 1.42647390514189e-02f;
  const V inside = 0.5f + 0.5f * (z * p / d);
  return x < V{} - 5.65f ? V{} : x > V{} + 5.65f ? V{} + 1.0f : inside;
}

// Hendrycks and Gimpel 2016, as it is defined.
template <typename V>
constexpr V gelu(V x) {
  return x * normal_share(x);
}

template <typename V>
constexpr V gelu_slope(V x) {
  const V density = 0.39894228f * exp_of_negative<V>(x * x * -0.5f);
  return normal_share(x) + x * density;
}

// 0 at -3 and below, 1 at 3 and above (Howard et al. 2019). NaN stays NaN.
template <typename V>
constexpr V hard_sigmoid(V x) {
  const V inside = (x + 3.0f) * (1.0f / 6);
  return x < V{} - 3.0f ? V{} : x > V{} + 3.0f ? V{} + 1.0f : inside;
}

template <typename V>
constexpr V hard_sigmoid_slope(V x) {
  const V rising = x > V{} - 3.0f ? V{} + 1.0f / 6 : V{};
  return x < V{} + 3.0f ? rising : V{};
}

template <typename V>
constexpr V hard_swish(V x) {
  return x * hard_sigmoid(x);
}

template <typename V>
constexpr V hard_swish_slope(V x) {
  const V inside = x * (1.0f / 3) + 0.5f;
  return x < V{} - 3.0f ? V{} : x > V{} + 3.0f ? V{} + 1.0f : inside;
}

}  // namespace
}  // namespace dtrain::backend
