#include "network_layers.hpp"

#include "../fusion.hpp"
#include "bfloat16.hpp"
#include "products/pixel_matrix.hpp"
#include "products/winograd.hpp"

namespace dtrain::backend::cpu {
namespace {

template <typename LayerType>
const LayerType* as(const nn::Node& node) {
  return std::get_if<LayerType>(&node.layer);
}

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// A dense layer on each pixel.
void multiply_pixels(const nn::TransposedConvolution& layer, Product& p) {
  p.in = {p.in.c, 1, 1};
  p.out = {layer.out * layer.stride * layer.stride, 1, 1};
  p.dense = true;
  p.spread = layer.stride;
}

std::unique_ptr<ProductLayer> product_layer(const nn::Graph& graph, const nn::Node& node, DType dtype, DType out_dtype,
                                            const nn::Shape& in) {
  Product p;
  p.out = node.output;
  p.dtype = dtype;
  p.out_dtype = out_dtype;
  p.widened = dtype == DType::bfloat16 && widens_bfloat16(this_cpu());
  p.in = in;
  p.bias = node.parameters.size() > 1;
  if (const auto* convolution = as<nn::Convolution>(node)) p.convolution = *convolution;
  p.dense = as<nn::Dense>(node) != nullptr;
  if (const auto* transposed = as<nn::TransposedConvolution>(node)) multiply_pixels(*transposed, p);
  p.by_matrices = multiplies_matrices(p, this_cpu(), onednn_major());
  p.by_tiles = filters_minimally(p, this_cpu());
  const auto offset = [&](std::size_t which) { return graph.parameters[at(node.parameters[which])].offset; };
  return std::make_unique<ProductLayer>(p, offset(0), p.bias ? offset(1) : -1);
}

}  // namespace

Layers::Layers(const nn::Graph& graph, DType dtype) : products(graph.nodes.size()), norms(graph.nodes.size()) {
  const Fusion fusion = fuse(graph);
  // The shape in memory: that of the value before a flatten which moves nothing.
  std::vector<nn::Shape> shapes;
  for (const nn::Node& node : graph.nodes) {
    const std::size_t index = shapes.size();
    const bool same = as<nn::Activation>(node) || as<nn::Dropout>(node) || as<nn::Scale>(node) ||
                      (as<nn::Flatten>(node) && fusion.flatten_is_free[index]);
    shapes.push_back(same ? shapes[at(node.inputs[0])] : node.output);
    if (as<nn::Convolution>(node) || as<nn::TransposedConvolution>(node) || as<nn::Dense>(node)) {
      const DType out = fusion.stays_float[index] ? DType::float32 : dtype;
      products[index] = product_layer(graph, node, dtype, out, shapes[at(node.inputs[0])]);
    } else if (const auto* norm = as<nn::BatchNorm>(node)) {
      const auto parameter = [&](std::size_t k) { return graph.parameters[at(node.parameters[k])].offset; };
      const auto statistic = [&](std::size_t k) { return graph.statistics[at(node.statistics[k])].offset; };
      norms[index] =
          std::make_unique<NormLayer>(NormLayer{*norm, node.output, parameter(0), parameter(1), statistic(0),
                                                statistic(1), graph.parameter_count, coefficient_bytes, node.learns});
      coefficient_bytes += cpu::coefficient_bytes(node.output.c);
    }
  }
}

}  // namespace dtrain::backend::cpu
