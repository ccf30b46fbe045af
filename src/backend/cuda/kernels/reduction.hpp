// Kernels of an Accelerator: additions of contributions, and their way to bfloat16 and back. Parts of a contribution
// begin anywhere, so that a thread moves one element.
#pragma once

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// out[i] = left[i] + right[i], to the nearest bfloat16 if `rounded`. `out` may be `left` or `right`.
struct SumOfTwo {
  float* out;
  const float* left;
  const float* right;
  std::int64_t total;
  bool rounded;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const float sum = left[i] + right[i];
    out[i] = rounded ? from_bfloat16(to_bfloat16(sum)) : sum;
  }
};

struct NarrowFloats {
  bfloat16_bits* to;
  const float* from;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { to[i] = to_bfloat16(from[i]); }
};

struct WidenFloats {
  float* to;
  const bfloat16_bits* from;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { to[i] = from_bfloat16(from[i]); }
};

}  // namespace dtrain::backend::cuda
