// Convolutions and dense layers, both ways: which of the ways to compute them a layer takes on this CPU.
#include "../lowering/graph_lowering.hpp"
#include "dense_gradient.hpp"
#include "dense_product.hpp"
#include "depthwise.hpp"
#include "matrix_gradient.hpp"
#include "product_ops.hpp"
#include "tile_convolution_op.hpp"
#include "tile_gradient_op.hpp"
#include "tile_stem_op.hpp"
#include "winograd.hpp"

namespace dtrain::backend::cpu {

void Lowering::forward_product(int index) {
  const TensorId x = value(node(index).inputs[0]);
  const TensorId y = new_value(index, node(index).output);
  add(forward_op(index, x, y), index, ".forward");
}

void Lowering::backward_product(int index, TensorId dy) {
  ProductLayer& layer = *layers_.products[at(index)];
  const int source = node(index).inputs[0];
  if (wants_gradient(source)) {
    const TensorId dx = new_tensor_like(value(source));
    add(source_gradient(index, dy, dx), index, ".backward_data");
    pass_on(source, dx);
  }
  if (!nn::is_held(node(index), 0)) {
    const TensorId x = value_again(source);
    add(weights_gradient(index, x, dy), index, ".backward_weights");
  }
  if (layer.bias_offset() >= 0 && !nn::is_held(node(index), 1)) {
    add(make_bias_gradient({layer.bias_offset(), shape_of(dy).c}, kernels_, dy), index, ".backward_bias");
  }
}

// Each direction is computed in the first way that is faster than oneDNN's for this layer, else in oneDNN's.
std::unique_ptr<Op> Lowering::forward_op(int index, TensorId source, TensorId result) const {
  ProductLayer& layer = *layers_.products[at(index)];
  if (layer.shape().by_filtering) return make_winograd_forward(layer, source, result, rows_of_regions(index));
  if (has_tile_convolution(layer.shape(), Direction::forward, this_cpu())) {
    return make_tile_convolution(layer, Direction::forward, source, result);
  }
  if (has_dense_product(layer.shape(), this_cpu())) return make_dense_forward(layer, source, result);
  return make_product_forward(layer, source, result);
}

std::unique_ptr<Op> Lowering::source_gradient(int index, TensorId dy, TensorId dx) const {
  ProductLayer& layer = *layers_.products[at(index)];
  if (layer.shape().by_filtering) return make_winograd_backward_data(layer, dy, dx, rows_of_regions(index));
  if (has_tile_convolution(layer.shape(), Direction::backward, this_cpu())) {
    return make_tile_convolution(layer, Direction::backward, dy, dx);
  }
  if (has_dense_product(layer.shape(), this_cpu())) return make_dense_backward_data(layer, dy, dx);
  return make_product_backward_data(layer, dy, dx);
}

std::unique_ptr<Op> Lowering::weights_gradient(int index, TensorId source, TensorId dy) const {
  ProductLayer& layer = *layers_.products[at(index)];
  const Product& shape = layer.shape();
  const CpuModel cpu = this_cpu();
  if (sums_minimally(shape, cpu)) return make_winograd_backward_weights(layer, source, dy, rows_of_regions(index));
  if (has_matrix_gradient(shape, cpu)) return make_matrix_gradient(layer, source, dy);
  if (has_dense_gradient(shape, cpu)) return make_dense_gradient(layer, source, dy);
  if (has_tile_gradient(shape, cpu)) return make_tile_gradient(layer, source, dy);
  if (has_tile_stem(shape, cpu)) return make_tile_stem(layer, source, dy);
  if (has_own_weights_gradient(shape)) return make_depthwise_weights_gradient(layer, kernels_, source, dy);
  return make_product_backward_weights(layer, source, dy);
}

}  // namespace dtrain::backend::cpu
