// Transposed convolutions, both ways.
#include "../graph_lowering.hpp"
#include "transposed.hpp"

namespace dtrain::backend::cpu {

void Lowering::forward_transposed(int index, TensorId x) {
  const nn::Node& n = node(index);
  const int source = n.inputs[0];
  add(make_transposed_forward(*layers_.products[at(index)], node(source).output, rows_of_regions(source), x,
                              new_value(index, n.output)),
      index, ".forward");
}

void Lowering::backward_transposed(int index, TensorId gradient) {
  ProductLayer& layer = *layers_.products[at(index)];
  const int source = node(index).inputs[0];
  const nn::Shape& shape = node(source).output;
  const RegionRows rows = rows_of_regions(source);
  if (wants_gradient(source)) {
    const TensorId result = new_tensor_like(value(source));
    add(make_transposed_backward_data(layer, shape, rows, gradient, result), index, ".backward_data");
    pass_on(source, result);
  }
  if (!nn::is_held(node(index), 0)) {
    add(make_transposed_backward_weights(layer, shape, rows, value(source), gradient), index, ".backward_weights");
  }
  if (!nn::is_held(node(index), 1)) {
    add(make_bias_gradient({layer.bias_offset(), node(index).output.c}, kernels_, gradient), index, ".backward_bias");
  }
}

}  // namespace dtrain::backend::cpu
