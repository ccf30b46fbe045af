// From a graph to programs: what a person calls a network becomes operations on planned memory.
#pragma once

#include <utility>
#include <vector>

#include "network_layers.hpp"
#include "program.hpp"

namespace dtrain::backend::cpu {

struct Lowered {
  Program program;
  // Parts of the gradient that no operation writes: [offset, size) in the flat buffer.
  std::vector<std::pair<std::int64_t, std::int64_t>> unwritten;
};

Lowered lower_training(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);
// Writes Context::logits; batch norms use the running statistics.
Lowered lower_evaluation(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);

}  // namespace dtrain::backend::cpu
