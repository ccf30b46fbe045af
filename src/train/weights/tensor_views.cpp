#include "tensor_views.hpp"

#include <algorithm>

namespace dtrain::train {

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return -1;
  }
  return count;
}

ForeignTensor transposed(const ForeignTensor& tensor, const std::vector<std::int64_t>& order) {
  ForeignTensor turned = tensor;
  for (std::size_t i = 0; i < order.size(); ++i) {
    turned.shape[i] = tensor.shape.at(static_cast<std::size_t>(order[i]));
    turned.strides[i] = tensor.strides.at(static_cast<std::size_t>(order[i]));
  }
  return turned;
}

// Groups of neighbouring axes of both shapes have the same number of elements. Within a group of the tensor each axis
// continues the next one, so that one stride leads through all of it.
std::optional<ForeignTensor> reshaped(const ForeignTensor& tensor, const std::vector<std::int64_t>& shape) {
  const bool is_sound = std::ranges::all_of(shape, [](std::int64_t extent) { return extent >= 1; });
  const std::int64_t count = element_count(shape);
  if (!is_sound || shape.size() > kMostDimensions || count < 1 || count != element_count(tensor.shape))
    return std::nullopt;
  std::vector<std::pair<std::int64_t, std::int64_t>> old;  // extent and stride
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 1) continue;
    const bool continues = !old.empty() && old.back().second == tensor.shape[i] * tensor.strides[i];
    if (continues) {
      old.back() = {old.back().first * tensor.shape[i], tensor.strides[i]};
    } else {
      old.emplace_back(tensor.shape[i], tensor.strides[i]);
    }
  }
  ForeignTensor view = tensor;
  view.shape = shape;
  view.strides.assign(shape.size(), 1);
  std::size_t at = shape.size();
  for (auto group = old.rbegin(); group != old.rend(); ++group) {
    std::int64_t left = group->first, stride = group->second;
    while (left > 1) {
      if (at == 0 || left % shape[at - 1] != 0) return std::nullopt;
      --at;
      view.strides[at] = stride;
      stride *= shape[at];
      left /= shape[at];
    }
  }
  return view;
}

std::optional<ForeignTensor> broadcast(const ForeignTensor& tensor, const std::vector<std::int64_t>& shape) {
  ForeignTensor wide = tensor;
  const std::size_t rank = std::max(shape.size(), tensor.shape.size());
  if (rank > kMostDimensions) return std::nullopt;
  wide.shape.insert(wide.shape.begin(), rank - tensor.shape.size(), 1);
  wide.strides.insert(wide.strides.begin(), rank - tensor.strides.size(), 0);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    std::int64_t& extent = wide.shape[rank - shape.size() + i];
    if (shape[i] == extent || shape[i] == 1) continue;
    if (extent != 1 || shape[i] < 1) return std::nullopt;
    extent = shape[i];
    wide.strides[rank - shape.size() + i] = 0;
  }
  return wide;
}

}  // namespace dtrain::train
