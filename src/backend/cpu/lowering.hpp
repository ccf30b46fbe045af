// From a graph to programs: what a person calls a network becomes operations on planned memory.
#pragma once

#include <memory>
#include <vector>

#include "fusion.hpp"
#include "norm.hpp"
#include "product.hpp"
#include "program.hpp"

namespace dtrain::backend::cpu {

// The layers that own something; programs refer to them, so this must outlive and stay where it is.
struct Layers {
  Layers(const nn::Graph& graph, DType dtype);
  std::vector<std::unique_ptr<ProductLayer>> products;  // by node, null elsewhere
  std::vector<std::unique_ptr<NormLayer>> norms;        // by node, null elsewhere
  std::size_t coefficient_bytes = 0;
};

struct Lowered {
  Program program;
  // Parts of the gradient that no operation writes: [offset, size) in the flat buffer.
  std::vector<std::pair<std::int64_t, std::int64_t>> unwritten;
};

Lowered lower_training(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);
// Writes Context::logits; batch norms use the running statistics.
Lowered lower_evaluation(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options);

}  // namespace dtrain::backend::cpu
