// How far two tensors are from each other, for proofs on the device (plans/plan_proof.hpp).
#pragma once

#include <cmath>

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// What two results may differ by, beside each other: relative * the larger one + absolute.
struct Tolerance {
  float relative = 0, absolute = 0;
};

// excess[i] = by how much more than the tolerance some pair of values differs, 0 where none does. Thread = every
// kThreads-th value.
template <typename T>
struct Compare {
  static constexpr std::int32_t kThreads = 1 << 14;
  const T* left;
  const T* right;
  std::int64_t size;
  Tolerance tolerance;
  float* excess;
  DTRAIN_KERNEL std::int64_t threads() const { return kThreads; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    float worst = 0;
    for (std::int64_t at = i; at < size; at += kThreads) {
      const float a = widen(left[at]), b = widen(right[at]);
      const float most = tolerance.relative * (fabsf(a) > fabsf(b) ? fabsf(a) : fabsf(b)) + tolerance.absolute;
      const float over = fabsf(a - b) - most;
      // What is no number is no agreement.
      if (!(over <= 0) && !(worst > over)) worst = over > 0 ? over : INFINITY;
    }
    excess[i] = worst;
  }
};

}  // namespace dtrain::backend::cuda
