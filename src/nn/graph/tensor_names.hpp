// Names of a node's tensors. Networks that were read from an MXNet symbol keep the names of its variables, because its
// .params files know only those.
#pragma once

#include <string>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// Parameters, then statistics. The views live as long as the graph.
std::vector<const TensorView*> tensors_of(const Graph& graph, const Node& node);

// Whether one of them is not the node's name with the usual suffix.
bool has_own_tensor_names(const Graph& graph, const Node& node);

// `names` in the order of tensors_of. Throws DataError when they are not as many as the node has tensors.
void rename_tensors(Graph& graph, int node, const std::vector<std::string>& names);

// Throws DataError when two tensors of the graph have one name.
void require_distinct_tensor_names(const Graph& graph);

}  // namespace dtrain::nn
