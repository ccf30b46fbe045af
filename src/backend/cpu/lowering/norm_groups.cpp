// Batch norms with the residual and the ReLU that are fused to them, both ways. `norm` is the node of a batch norm,
// `output` the last node of its group, whose value is the group's.
#include "../norm.hpp"
#include "graph_lowering.hpp"

namespace dtrain::backend::cpu {

void Lowering::forward_norm_statistics(int norm) {
  const TensorId input = value(node(norm).inputs[0]);
  add(make_norm_statistics(*layers_.norms[at(norm)], kernels_, input), norm, ".statistics");
}

void Lowering::forward_norm(int norm, int output) {
  const NormGroup& group = fusion_.norms[at(norm)];
  const TensorId input = value(node(norm).inputs[0]);
  const TensorId residual = group.residual >= 0 ? value(group.residual) : kNoTensor;
  const TensorId result = new_value(output, shape_of(input));
  add(make_norm_apply(*layers_.norms[at(norm)], kernels_, input, residual, group.relu, result), norm, ".forward");
}

// The value for the backward pass: where the forward pass did not keep it, it is computed again.
TensorId Lowering::value_again(int index) {
  const int norm = fusion_.norm_of[at(index)];
  if (norm < 0 || !fusion_.norms[at(norm)].computed_twice) return value(index);
  const TensorId input = value(node(norm).inputs[0]);
  const TensorId again = new_tensor_like(value(index));
  add(make_norm_apply(*layers_.norms[at(norm)], kernels_, input, kNoTensor, fusion_.norms[at(norm)].relu, again), norm,
      ".again");
  return again;
}

// First the sums over all samples, then the gradient by the input, which needs them. The gradient behind the ReLU's
// mask is that by the residual, too.
void Lowering::backward_norm(int norm, int output) {
  const NormGroup& group = fusion_.norms[at(norm)];
  const NormLayer& layer = *layers_.norms[at(norm)];
  const int source = node(norm).inputs[0];
  const NormGradientTensors tensors = norm_gradient_tensors(norm, output);
  const bool is_masked_kept = tensors.masked != kNoTensor;
  if (layer.learns || is_masked_kept) add(make_norm_gradient_sums(layer, kernels_, tensors), norm, ".gradient_sums");
  if (passes_residual(group)) pass_on(group.residual, is_masked_kept ? tensors.masked : tensors.gradient);
  if (!wants_gradient(source)) return;
  // A gradient that reaches the same value on another way is added here instead of in a pass of its own.
  const TensorId addend = take_gradient_part(source);
  const TensorId dx = new_tensor_like(tensors.input);
  add(make_norm_gradient(layer, kernels_, tensors, addend, dx), norm, ".gradient");
  pass_on(source, dx);
}

// The masked gradient is written to memory where it is costly to compute twice, or where the residual wants it.
NormGradientTensors Lowering::norm_gradient_tensors(int norm, int output) {
  const NormGroup& group = fusion_.norms[at(norm)];
  const std::vector<TensorId> parts = gradient_parts(output, 2);
  NormGradientTensors tensors;
  tensors.gradient = parts[0];
  if (parts.size() > 1) tensors.gradient2 = parts[1];
  tensors.input = value(node(norm).inputs[0]);
  if (group.relu) tensors.mask = group.residual >= 0 ? Mask::from_output : Mask::from_input;
  if (tensors.mask == Mask::from_output) tensors.output = value(output);
  const bool reads_two = tensors.gradient2 != kNoTensor || tensors.mask == Mask::from_output;
  const bool residual_wants_it = tensors.mask != Mask::none && passes_residual(group);
  if (reads_two || residual_wants_it) tensors.masked = new_tensor_like(tensors.gradient);
  return tensors;
}

bool Lowering::passes_residual(const NormGroup& group) const {
  return group.residual >= 0 && wants_gradient(group.residual);
}

}  // namespace dtrain::backend::cpu
