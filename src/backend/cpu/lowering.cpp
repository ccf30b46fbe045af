#include "graph_lowering.hpp"

namespace dtrain::backend::cpu {

Lowered lower_training(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options) {
  return Lowering(graph, layers, kernels, options).training();
}

Lowered lower_evaluation(const nn::Graph& graph, Layers& layers, const Kernels& kernels,
                         const CompileOptions& options) {
  return Lowering(graph, layers, kernels, options).evaluation();
}

}  // namespace dtrain::backend::cpu
