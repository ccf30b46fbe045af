// Transposed convolutions, both ways.
#include "../lowering/graph_lowering.hpp"
#include "product_ops.hpp"
#include "transposed.hpp"

namespace dtrain::backend::cpu {

void Lowering::forward_transposed(int index) {
  const int source = node(index).inputs[0];
  const TensorId y = new_value(index, node(index).output);
  add(make_transposed_forward(*layers_.products[at(index)], node(source).output, rows_of_regions(source), value(source),
                              y),
      index, ".forward");
}

void Lowering::backward_transposed(int index, TensorId dy) {
  ProductLayer& layer = *layers_.products[at(index)];
  const int source = node(index).inputs[0];
  const nn::Shape& shape = node(source).output;
  const RegionRows rows = rows_of_regions(source);
  if (wants_gradient(source)) {
    const TensorId dx = new_tensor_like(value(source));
    add(make_transposed_backward_data(layer, shape, rows, dy, dx), index, ".backward_data");
    pass_on(source, dx);
  }
  if (!nn::is_held(node(index), 0)) {
    add(make_transposed_backward_weights(layer, shape, rows, value(source), dy), index, ".backward_weights");
  }
  if (!nn::is_held(node(index), 1)) {
    add(make_bias_gradient({layer.bias_offset(), node(index).output.c}, kernels_, dy), index, ".backward_bias");
  }
}

}  // namespace dtrain::backend::cpu
