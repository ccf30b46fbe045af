// When gradients are written past the caches. Sources of kernels include this: no header with code in it.
#pragma once

#include <stdint.h>

namespace dtrain::backend::cpu {

// Larger gradients than this, in numbers, do not stay in a core's second cache. To write them past it spares reading
// what they replace. Only whole lines can be written so.
constexpr int64_t kCachedNumbers = 1 << 18;
constexpr int kLineBytes = 64;

inline bool passes_caches(const float* gradient, int64_t size) {
  return size > kCachedNumbers && (uintptr_t)gradient % kLineBytes == 0;
}

}  // namespace dtrain::backend::cpu
