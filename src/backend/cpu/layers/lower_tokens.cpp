// The layers of transformers that have parameters, both ways.
#include "../lowering/graph_lowering.hpp"
#include "token_layers.hpp"

namespace dtrain::backend::cpu {

// In training it keeps the moments of each pixel, which the gradient reads.
void Lowering::forward_layer_norm(int index, const nn::LayerNorm& layer) {
  const TensorId x = value(node(index).inputs[0]);
  const nn::Shape shape = shape_of(x);
  const GainShift place{parameter(index, 0), parameter(index, 1), node(index).learns};
  if (training_) moments_[at(index)] = lowered_.program.add_tensor({2, shape.h, shape.w}, DType::float32);
  const TensorId y = new_value(index, shape);
  add(make_layer_norm(layer, place, kernels_, x, y, moments_[at(index)]), index, ".forward");
}

// One operation computes the gradients by the input and by gamma and beta: also where the input wants none.
void Lowering::backward_layer_norm(int index, const nn::LayerNorm& layer, TensorId dy) {
  const int source = node(index).inputs[0];
  const TensorId x = value(source);
  const GainShift place{parameter(index, 0), parameter(index, 1), node(index).learns};
  const TensorId dx = new_tensor_like(x);
  add(make_layer_norm_gradient(layer, place, node(index).output.c, kernels_, x, dy, moments_[at(index)], dx), index,
      ".gradient");
  pass_on(source, dx);
}

void Lowering::backward_layer_scale(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  const nn::Shape shape = shape_of(dy);
  if (!nn::is_held(node(index), 0)) {
    add(make_gain_gradient(shape, parameter(index, 0), kernels_, value(source), dy), index, ".gain_gradient");
  }
  if (!wants_gradient(source)) return;
  const TensorId dx = new_tensor_like(dy);
  add(make_layer_scale(shape, parameter(index, 0), kernels_, dy, dx), index, ".gradient");
  pass_on(source, dx);
}

void Lowering::backward_class_token(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 0)) {
    add(make_token_sums(parameter(index, 0), node(index).output.c, kernels_, dy), index, ".token_gradient");
  }
  if (!wants_gradient(source)) return;
  const TensorId dx = new_tensor_like(value(source));
  add(make_class_token_gradient(dy, dx), index, ".gradient");
  pass_on(source, dx);
}

void Lowering::backward_position(int index, TensorId dy) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 0)) {
    const auto size = static_cast<int>(node(index).output.size());
    add(make_token_sums(parameter(index, 0), size, kernels_, dy), index, ".position_gradient");
  }
  if (wants_gradient(source)) pass_on(source, dy);
}

}  // namespace dtrain::backend::cpu
