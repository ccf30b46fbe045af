// From a graph to a program: each layer becomes operations on planned memory.
#pragma once

#include <vector>

#include "../network_layers.hpp"
#include "../program.hpp"

namespace dtrain::backend::cpu {

// A program that is not planned yet: Program::plan() comes next. It refers to the layers and the kernels that it was
// made with, which must outlive it; the graph and the options may go.
struct Lowered {
  Program program;
  // Parts of a contribution that no operation writes: the executable clears them for each shard.
  std::vector<Part> unwritten;
};

// Forward, loss and backward of one shard. Writes its contribution.
Lowered lower_training(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);
// Forward alone. Writes Context::logits; batch norms use the running statistics.
Lowered lower_evaluation(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);

}  // namespace dtrain::backend::cpu
