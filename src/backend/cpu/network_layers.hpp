// What a graph's layers own besides the parameters.
#pragma once

#include <memory>
#include <vector>

#include "norm.hpp"
#include "products/product_layer.hpp"

namespace dtrain::backend::cpu {

// The layers that own something; programs refer to them, so this must outlive and stay where it is.
struct Layers {
  Layers(const nn::Graph& graph, DType dtype);
  std::vector<std::unique_ptr<ProductLayer>> products;  // by node, null elsewhere
  std::vector<std::unique_ptr<NormLayer>> norms;        // by node, null elsewhere
  std::size_t coefficient_bytes = 0;
};

}  // namespace dtrain::backend::cpu
