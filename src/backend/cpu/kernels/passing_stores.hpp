// Which numbers are written by non-temporal stores, past the caches. Sources of kernels include this. So it includes no
// header with code in it, and each source has a copy of its function: see kernel_vector.hpp.
#pragma once

#include <stdint.h>

namespace dtrain::backend::cpu {

constexpr int kLineBytes = 64;  // of a cache line
// Arrays of more numbers than this do not stay in a core's second cache. To write them past it spares reading what they
// replace.
constexpr int64_t kCachedNumbers = 1 << 18;

namespace {

// Only whole lines can be written so: the array must begin with one. Behind the last store a fence must come before
// others may read.
inline bool passes_caches(const float* array, int64_t size) {
  return size > kCachedNumbers && (uintptr_t)array % kLineBytes == 0;
}

}  // namespace
}  // namespace dtrain::backend::cpu
