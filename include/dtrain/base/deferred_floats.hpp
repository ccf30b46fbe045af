// Floats that are computed when they are added up.
#pragma once

#include <cstdint>
#include <span>

namespace dtrain {

// A part of a leaf of a reduction, as what it is made of. The gradient of a large dense layer is far larger than that,
// and the time is that of writing it: so it is written once, as the sum over leaves, and not once for each leaf.
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
