// Floats that are computed when they are added up.
#pragma once

#include <cstdint>
#include <span>

namespace dtrain {

// Computes a part of a leaf of a reduction from factors that are far smaller than it: the weights' gradient of a large
// dense layer is the product of two small matrices. To write such a part takes longer than to compute it, so the
// reduction writes only the sum over leaves.
class DeferredFloats {
 public:
  virtual ~DeferredFloats() = default;
  // Writes to `out` the sum of the floats [first, first + out.size()) of the leaves, counted from a leaf's begin. They
  // are 2^k neighbours in their order, this one the first, which defer the same part, and are added as the canonical
  // tree adds them (comm/tree.hpp). Any thread.
  virtual void add_up(std::span<const DeferredFloats* const> leaves, std::int64_t first,
                      std::span<float> out) const = 0;
};

}  // namespace dtrain
