// Layer norm, local response norm, layer scale, tokens and attention, both ways.
#include "../graph_lowering.hpp"
#include "token_layers.hpp"

namespace dtrain::backend::cpu {

void Lowering::forward_token_layer(int index, TensorId x) {
  const nn::Node& n = node(index);
  const nn::Shape shape = shape_of(x);
  if (const auto* norm = as<nn::LayerNorm>(n)) {
    if (training_) moments_[at(index)] = program().add_tensor({2, shape.h, shape.w}, DType::float32);
    add(make_layer_norm(*norm, GainShift{parameter(index, 0), parameter(index, 1), n.learns}, kernels_, x,
                        new_value(index, shape), moments_[at(index)]),
        index, ".forward");
  } else if (const auto* response = as<nn::LocalResponseNorm>(n)) {
    add(make_local_response_norm(*response, shape.c, kernels_, x, new_value(index, shape)), index, ".forward");
  } else if (as<nn::LayerScale>(n)) {
    add(make_layer_scale(shape, parameter(index, 0), kernels_, x, new_value(index, shape)), index, ".forward");
  } else if (as<nn::ClassToken>(n)) {
    add(make_class_token(parameter(index, 0), kernels_, x, new_value(index, n.output)), index, ".forward");
  } else if (as<nn::Position>(n)) {
    add(make_position(parameter(index, 0), kernels_, x, new_value(index, shape)), index, ".forward");
  } else if (as<nn::FirstToken>(n)) {
    add(make_first_token(x, new_value(index, n.output)), index, ".forward");
  } else if (const auto* attention = as<nn::Attention>(n)) {
    add(make_attention(*attention, shape, kernels_, x, new_value(index, n.output)), index, ".forward");
  } else {
    DTRAIN_CHECK(false, "a layer the cpu backend does not know");
  }
}

bool Lowering::backward_token_layer(int index, TensorId gradient) {
  const nn::Node& n = node(index);
  const int source = n.inputs[0];
  const TensorId x = value(source);
  if (as<nn::LayerScale>(n)) return backward_layer_scale(index, gradient), true;
  if (as<nn::ClassToken>(n)) return backward_class_token(index, gradient), true;
  if (as<nn::Position>(n)) return backward_position(index, gradient), true;
  const auto* attention = as<nn::Attention>(n);
  const auto* norm = as<nn::LayerNorm>(n);
  const auto* response = as<nn::LocalResponseNorm>(n);
  if (!attention && !norm && !response && !as<nn::FirstToken>(n)) return false;
  const TensorId result = new_tensor_like(x);
  if (norm) {
    const GainShift place{parameter(index, 0), parameter(index, 1), n.learns};
    add(make_layer_norm_gradient(*norm, place, n.output.c, kernels_, x, gradient, moments_[at(index)], result), index,
        ".gradient");
  } else if (response) {
    add(make_local_response_norm_gradient(*response, n.output.c, kernels_, x, gradient, result), index, ".gradient");
  } else if (attention) {
    add(make_attention_gradient(*attention, shape_of(x), kernels_, x, gradient, result), index, ".gradient");
  } else {
    add(make_first_token_gradient(gradient, result), index, ".gradient");
  }
  pass_on(source, result);
  return true;
}

void Lowering::backward_layer_scale(int index, TensorId gradient) {
  const int source = node(index).inputs[0];
  const nn::Shape shape = shape_of(gradient);
  if (!nn::is_held(node(index), 0)) {
    add(make_gain_gradient(shape, parameter(index, 0), kernels_, value(source), gradient), index, ".gain_gradient");
  }
  if (!wants_gradient(source)) return;
  const TensorId result = new_tensor_like(gradient);
  add(make_layer_scale(shape, parameter(index, 0), kernels_, gradient, result), index, ".gradient");
  pass_on(source, result);
}

void Lowering::backward_class_token(int index, TensorId gradient) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 0)) {
    add(make_token_sums(parameter(index, 0), node(index).output.c, kernels_, gradient), index, ".token_gradient");
  }
  if (!wants_gradient(source)) return;
  const TensorId result = new_tensor_like(value(source));
  add(make_class_token_gradient(gradient, result), index, ".gradient");
  pass_on(source, result);
}

void Lowering::backward_position(int index, TensorId gradient) {
  const int source = node(index).inputs[0];
  if (!nn::is_held(node(index), 0)) {
    const auto size = static_cast<int>(node(index).output.size());
    add(make_token_sums(parameter(index, 0), size, kernels_, gradient), index, ".position_gradient");
  }
  if (wants_gradient(source)) pass_on(source, gradient);
}

}  // namespace dtrain::backend::cpu
