// Order statistics of measured values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace dtrain {

// The value of `ascending` whose rank is nearest to `share`, in [0, 1], of all ranks. The values must be sorted.
double quantile(std::span<const double> ascending, double share);

// The middle value; the larger of the two middle ones where their number is even, so that it is always one of them.
double median(std::vector<double> values);

// The mean of the two middle values where their number is even.
double interpolated_median(std::vector<double> values);

// The same of all values but the one at `index`. There are at least two, and they must be sorted: it takes no time.
double interpolated_median_without(std::span<const double> ascending, std::size_t index);

}  // namespace dtrain
