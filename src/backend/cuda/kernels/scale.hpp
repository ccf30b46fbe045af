// What float16 asks for beside its own arithmetic: see <dtrain/backend/loss_scale.hpp>.
#pragma once

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// values[i] /= *scale, a power of two. Parts of a contribution begin anywhere: thread = value.
struct Unscale {
  float* values;
  std::int64_t total;
  const float* scale;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { values[i] /= *scale; }
};

// *found becomes 1 where a value is infinite or NaN; else it stays as it is. All threads that write write the same.
struct FindNotFinite {
  const float* values;
  std::int64_t total;
  float* found;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<float>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const Pack<float> pack = load_pack(values, i * Pack<float>::size, total);
    for (const float value : pack.values) {
      if (!(value - value == 0)) *found = 1;
    }
  }
};

}  // namespace dtrain::backend::cuda
