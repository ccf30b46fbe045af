// Transcendentals as own polynomials in double: glibc picks other code (other last bits) on other CPUs, and what feeds
// weights must not. Relative error below 1e-13 in the stated range.
#pragma once

namespace dtrain {

double portable_exp(double x);  // |x| <= 700
double portable_log(double x);  // x > 0
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
