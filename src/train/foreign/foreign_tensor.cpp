#include "foreign_tensor.hpp"

#include <fmt/format.h>

#include <cstring>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/float16.hpp>

#include "checkpoint/safetensors.hpp"

namespace dtrain::train {
namespace {

// Calls visit(offset) for the place of each element, last index fastest. It calls itself for each dimension.
template <typename Visit>
void for_each_offset(const ForeignTensor& tensor, std::size_t dimension, std::int64_t offset, const Visit& visit) {
  if (dimension == tensor.shape.size()) return visit(static_cast<std::uint64_t>(offset));
  for (std::int64_t i = 0; i < tensor.shape[dimension]; ++i) {
    for_each_offset(tensor, dimension + 1, offset + i * tensor.strides[dimension], visit);
  }
}

template <typename Stored, typename Convert>
void copy_as(const ForeignTensor& tensor, std::span<float> target, Convert convert) {
  auto out = target.begin();
  for_each_offset(tensor, 0, 0, [&](std::uint64_t offset) {
    Stored stored;
    std::memcpy(&stored, tensor.bytes.data() + offset * sizeof(Stored), sizeof(Stored));
    *out++ = convert(stored);
  });
}

}  // namespace

std::vector<std::int64_t> packed_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::uint64_t stride = 1;  // wraps only where another extent is 0, so that there are no elements
  for (std::size_t i = shape.size(); i-- > 0; stride *= static_cast<std::uint64_t>(shape[i])) {
    strides[i] = static_cast<std::int64_t>(stride);
  }
  return strides;
}

void check_tensor_bytes(const ForeignTensor& tensor) {
  const std::uint64_t element = dtype_bytes(tensor.dtype);
  if (element == 0) throw DataError(fmt::format("the dtype '{}' is unknown", tensor.dtype));
  if (tensor.shape.size() > kMostDimensions)
    throw DataError(fmt::format("{} dimensions; at most {} are read", tensor.shape.size(), kMostDimensions));
  std::uint64_t last = 0;
  bool fits = tensor.strides.size() == tensor.shape.size();
  for (std::size_t i = 0; fits && i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0 || tensor.strides[i] < 0) {
      throw DataError(fmt::format("extent {} with stride {}", tensor.shape[i], tensor.strides[i]));
    }
    if (tensor.shape[i] == 0) return;
    const auto steps = static_cast<std::uint64_t>(tensor.shape[i] - 1);
    std::uint64_t reach = 0;
    fits = !__builtin_mul_overflow(steps, static_cast<std::uint64_t>(tensor.strides[i]), &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || last >= tensor.bytes.size() / element) {
    throw DataError(fmt::format("{} bytes do not hold all of its elements", tensor.bytes.size()));
  }
}

bool is_real(const ForeignTensor& tensor) {
  return tensor.dtype == "F32" || tensor.dtype == "F16" || tensor.dtype == "BF16" || tensor.dtype == "F64";
}

void copy_values(const ForeignTensor& tensor, std::span<float> target) {
  if (tensor.dtype == "F32") {
    copy_as<float>(tensor, target, [](float value) { return value; });
  } else if (tensor.dtype == "F64") {
    copy_as<double>(tensor, target, [](double value) { return static_cast<float>(value); });
  } else if (tensor.dtype == "F16") {
    copy_as<float16_bits>(tensor, target, from_float16);
  } else {
    DTRAIN_CHECK(tensor.dtype == "BF16", "the caller asked is_real()");
    copy_as<bfloat16_bits>(tensor, target, from_bfloat16);
  }
}

}  // namespace dtrain::train
