// Tensors of a file with their axes exchanged, split, joined or repeated, where they lie.
#pragma once

#include <optional>

#include "foreign/foreign_tensor.hpp"

namespace dtrain::train {

// -1: more than 64 bits count.
std::int64_t element_count(const std::vector<std::int64_t>& shape);
// Axis i is axis order[i] of the tensor, whose axes `order` names once each.
ForeignTensor transposed(const ForeignTensor& tensor, const std::vector<std::int64_t>& order);
// With its elements in the same order. nullopt: another number of elements, or no strides lead to them, or more than
// kMostDimensions.
std::optional<ForeignTensor> reshaped(const ForeignTensor& tensor, const std::vector<std::int64_t>& shape);
// Axes of extent 1 in front of it, and those of extent 1 repeated, as NumPy broadcasts. nullopt: the shapes do not fit,
// or have more than kMostDimensions.
std::optional<ForeignTensor> broadcast(const ForeignTensor& tensor, const std::vector<std::int64_t>& shape);

}  // namespace dtrain::train
