#include "network_layers.hpp"

#include "../fusion.hpp"
#include "../node_access.hpp"
#include "bfloat16.hpp"
#include "products/pixel_matrix.hpp"
#include "products/winograd.hpp"

namespace dtrain::backend::cpu {
namespace {

// A dense layer on each pixel.
void multiply_pixels(const nn::TransposedConvolution& layer, Product& p) {
  p.in = {p.in.c, 1, 1};
  p.out = {layer.out * layer.stride * layer.stride, 1, 1};
  p.dense = true;
  p.spread = layer.stride;
}

// `in` is the shape of the input as it lies in memory.
std::unique_ptr<ProductLayer> product_layer(const nn::Graph& graph, const nn::Node& node, DType dtype, DType out_dtype,
                                            const nn::Shape& in) {
  const CpuModel cpu = this_cpu();
  Product p;
  p.in = in;
  p.out = node.output;
  p.dense = as<nn::Dense>(node) != nullptr;
  p.bias = node.parameters.size() > 1;
  p.dtype = dtype;
  p.out_dtype = out_dtype;
  if (const auto* convolution = as<nn::Convolution>(node)) p.convolution = *convolution;
  if (const auto* transposed = as<nn::TransposedConvolution>(node)) multiply_pixels(*transposed, p);
  // How it is computed follows from what it is.
  p.widened = dtype == DType::bfloat16 && widens_bfloat16(cpu);
  p.by_matrices = multiplies_matrices(p, cpu, onednn_major());
  p.by_filtering = filters_minimally(p, cpu);
  const auto offset = [&](std::size_t which) { return graph.parameters[at(node.parameters[which])].offset; };
  return std::make_unique<ProductLayer>(p, offset(0), p.bias ? offset(1) : -1);
}

// Its coefficients begin `coefficients` bytes behind the first norm's.
NormLayer norm_layer(const nn::Graph& graph, const nn::Node& node, std::size_t coefficients) {
  const auto parameter = [&](std::size_t which) { return graph.parameters[at(node.parameters[which])].offset; };
  const auto statistic = [&](std::size_t which) { return graph.statistics[at(node.statistics[which])].offset; };
  return {.layer = *as<nn::BatchNorm>(node),
          .shape = node.output,
          .gamma = parameter(0),
          .beta = parameter(1),
          .mean = statistic(0),
          .variance = statistic(1),
          .first_statistic = graph.parameter_count,
          .coefficients = coefficients,
          .learns = node.learns};
}

// Whether the value lies in memory as the input does, whatever its shape is.
bool keeps_shape_in_memory(const nn::Node& node, bool flatten_is_free) {
  return as<nn::Activation>(node) || as<nn::Dropout>(node) || as<nn::Scale>(node) ||
         (as<nn::Flatten>(node) && flatten_is_free);
}

}  // namespace

Layers::Layers(const nn::Graph& graph, DType dtype) : products(graph.nodes.size()), norms(graph.nodes.size()) {
  const Fusion fusion = fuse(graph);
  std::vector<nn::Shape> shapes;  // by node, in memory: that of the value before a flatten which moves nothing
  for (const nn::Node& node : graph.nodes) {
    const std::size_t index = shapes.size();
    const bool keeps = keeps_shape_in_memory(node, fusion.flatten_is_free[index]);
    shapes.push_back(keeps ? shapes[at(node.inputs[0])] : node.output);
    if (as<nn::Convolution>(node) || as<nn::TransposedConvolution>(node) || as<nn::Dense>(node)) {
      const DType out = fusion.stays_float[index] ? DType::float32 : dtype;
      products[index] = product_layer(graph, node, dtype, out, shapes[at(node.inputs[0])]);
    } else if (as<nn::BatchNorm>(node)) {
      norms[index] = std::make_unique<NormLayer>(norm_layer(graph, node, coefficient_bytes));
      coefficient_bytes += cpu::coefficient_bytes(node.output.c);
    }
  }
}

}  // namespace dtrain::backend::cpu
