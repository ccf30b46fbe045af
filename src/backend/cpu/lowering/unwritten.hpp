// Which parts of a contribution stay without a value in training.
#pragma once

#include <vector>

#include "../../fusion.hpp"
#include "../program.hpp"

namespace dtrain::backend::cpu {

// Pure. The gradients of parameters that no operation writes, and the statistics of batch norms that do not learn, in
// the order of the nodes. `is_reached`, by node: whether the backward walk brings a gradient to the node's value.
std::vector<Part> unwritten_parts(const nn::Graph& graph, const Fusion& fusion, const std::vector<bool>& is_reached);

}  // namespace dtrain::backend::cpu
