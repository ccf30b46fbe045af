// exp for any argument: the portable polynomial within its range, its ends outside, NaN for NaN.
#pragma once

#include <algorithm>
#include <cmath>

#include <dtrain/base/math.hpp>

namespace dtrain::backend::reference {

inline double exponential(double x) { return std::isnan(x) ? x : portable_exp(std::clamp(x, -700.0, 700.0)); }

}  // namespace dtrain::backend::reference
