// How a channels-last tensor looks to the kernels: see kernels.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/kernels.hpp"

namespace dtrain::backend::cpu {

// Channels repeated until they fill whole vectors, and at least four of them, so that sums run in independent
// registers. channels >= 1.
inline int row_width(int channels) {
  const int whole = std::lcm(std::max(channels, 1), 16);
  const int repeat = (64 + whole - 1) / whole;
  return whole * repeat;
}

inline Rows rows_of(std::int64_t pixels, int channels) {
  const int width = row_width(channels);
  const std::int64_t elements = pixels * channels;
  return {elements / width, width, static_cast<int>(elements % width)};
}

}  // namespace dtrain::backend::cpu
