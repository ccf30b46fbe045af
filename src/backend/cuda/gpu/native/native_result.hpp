// Whether a native kernel computed what its definition computes, where sums in another order make other bits. Pure:
// gpu_device.cpp runs both, once, before it relies on the native one.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "../../call.hpp"

namespace dtrain::backend::cuda {

// What an operation leaves: values in one piece of memory, which it does not read.
struct NativeResult {
  void* values;
  std::size_t bytes;
  DType dtype;
};
// nullopt: its native kernel has the bits of its definition, or it has none.
std::optional<NativeResult> result_of(const Work& work);

// Whether the values differ by no more than roundings; NaN is NaN.
bool are_near(std::span<const std::byte> native, std::span<const std::byte> defined, DType dtype);

}  // namespace dtrain::backend::cuda
