// What every pass over a graph asks of its nodes.
#pragma once

#include <cstddef>
#include <variant>

#include <dtrain/nn/graph.hpp>

namespace dtrain::backend {

// nullptr: another layer.
template <typename LayerType>
const LayerType* as(const nn::Node& node) {
  return std::get_if<LayerType>(&node.layer);
}

// Nodes and what they hold name each other by int.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace dtrain::backend
