#include "graph_lowering.hpp"

namespace dtrain::backend::cpu {

void Lowering::backward_concat(int index, TensorId gradient) {
  int first_channel = 0;
  for (const int input : node(index).inputs) {
    const nn::Shape& shape = node(input).output;
    if (wants_gradient(input)) {
      const TensorId result = program().add_tensor(shape, options_.dtype);
      add(make_concat_gradient(gradient, first_channel, result), index, ".gradient");
      pass_on(input, result);
    }
    first_channel += shape.c;
  }
}

void Lowering::backward_multiply(int index, TensorId gradient) {
  const int source = node(index).inputs[0], factors = node(index).inputs[1];
  if (wants_gradient(factors)) {
    const TensorId result = new_tensor_like(value(factors));
    add(make_factor_gradient(node(index).output, kernels_, value(source), gradient, result), index, ".factor_gradient");
    pass_on(factors, result);
  }
  if (wants_gradient(source)) {
    const TensorId result = new_tensor_like(value(source));
    add(make_multiply(node(index).output, kernels_, gradient, value(factors), result), index, ".gradient");
    pass_on(source, result);
  }
}

Lowered lower_training(const nn::Graph& graph, Layers& layers, const Kernels& kernels, const CompileOptions& options) {
  return Lowering(graph, layers, kernels, options).training();
}

Lowered lower_evaluation(const nn::Graph& graph, Layers& layers, const Kernels& kernels,
                         const CompileOptions& options) {
  return Lowering(graph, layers, kernels, options).evaluation();
}

}  // namespace dtrain::backend::cpu
