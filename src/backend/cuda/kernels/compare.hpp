// How far two tensors are from each other, for proofs on the device: of engines (plans/plan_proof.hpp) and of native
// kernels (gpu/native/natives.hpp).
#pragma once

#include <cmath>
#include <type_traits>

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// What two results may differ by, beside each other: relative * the larger one + absolute.
struct Tolerance {
  float relative = 0, absolute = 0;
  bool takes_not_finite = false;  // NaN agrees with NaN, an infinity with the same one
};

// excess[i] = by how much more than the tolerance some pair of values differs, 0 where none does. Whole numbers have no
// tolerance: they are words of any two tensors that must have the same bits. Thread = every kThreads-th value.
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
      const float over = excess_at(at);
      if (over > worst) worst = over;
    }
    excess[i] = worst;
  }
  DTRAIN_KERNEL float excess_at(std::int64_t at) const {
    if constexpr (std::is_integral_v<T>) {
      return left[at] == right[at] ? 0.0f : 1.0f;
    } else {
      const float a = widen(left[at]), b = widen(right[at]);
      if (tolerance.takes_not_finite && (a == b || (a != a && b != b))) return 0;
      const float most = tolerance.relative * (fabsf(a) > fabsf(b) ? fabsf(a) : fabsf(b)) + tolerance.absolute;
      const float over = fabsf(a - b) - most;
      if (over <= 0) return 0;
      return over > 0 ? over : INFINITY;  // what is no number is no agreement
    }
  }
};

}  // namespace dtrain::backend::cuda
