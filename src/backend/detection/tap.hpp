// What a pixel counts in a point between pixels. Kernels include this, so no header of the standard library with code.
#pragma once

#include <stdint.h>

namespace dtrain::backend {

struct Tap {
  int32_t pixel = 0;  // of the value that holds all levels
  float weight = 0;
};

}  // namespace dtrain::backend
