// Fine-tuning of a part of a network.
#pragma once

#include <string>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// Ends the learning of the layers that `which` names, and lets all others learn: parts separated by commas, each a
// number N for the first N convolutions and dense layers with all that stands before the next of them, `backbone` for
// all before the last one, and in a detector for what lies below its feature pyramid, or a pattern (* ? [...]) of
// layers' names. Returns how many tensors learn no longer.
// Throws UsageError for a part that names no layer with parameters, and where nothing is left to learn.
std::int64_t freeze(Graph& graph, const std::string& which);

std::int64_t frozen_tensors(const Graph& graph);  // how many do not learn

}  // namespace dtrain::nn
