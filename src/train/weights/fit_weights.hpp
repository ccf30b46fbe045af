// How many tensors of a network a file has.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <dtrain/nn/graph.hpp>

#include "foreign/foreign_tensor.hpp"

namespace dtrain::train {

// Those of all layers but the last, where every one of them fits by name and shape.
std::optional<std::size_t> whole_fit(const std::vector<ForeignTensor>& tensors, const nn::Graph& graph);

}  // namespace dtrain::train
