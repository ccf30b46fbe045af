// A tensor in a file of another program, where it lies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::train {

struct ForeignTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements, one for each extent
  std::string dtype;                  // by its name in safetensors: "F32", "BF16", ...
  ByteView bytes;                     // from its first element on; borrowed
};

inline constexpr std::size_t kMostDimensions = 32;  // as NumPy has them

// Strides where the last index runs fastest. The shape's extents are checked.
std::vector<std::int64_t> packed_strides(const std::vector<std::int64_t>& shape);

// Throws DataError, which does not name the tensor, where its bytes do not hold all of its elements, and for more than
// kMostDimensions.
void check_tensor_bytes(const ForeignTensor& tensor);

// Whether the dtype holds real numbers that become float32.
bool is_real(const ForeignTensor& tensor);

// Copies all elements of a checked, real tensor in the order of a packed one. `target` has their number.
void copy_values(const ForeignTensor& tensor, std::span<float> target);

}  // namespace dtrain::train
