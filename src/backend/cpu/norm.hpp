// Batch norm, fused with what follows it: relu(norm(x) + residual). In training it takes two operations each way, the
// first for sums over all samples, the second for the values.
#pragma once

#include <memory>

#include "program.hpp"
#include "rows.hpp"

namespace dtrain::backend::cpu {

// One batch norm's numbers. Offsets are of the flat buffers and of a contribution.
struct NormLayer {
  nn::BatchNorm layer;
  nn::Shape shape;
  std::int64_t gamma = 0, beta = 0;     // in parameters and gradients
  std::int64_t mean = 0, variance = 0;  // in the flat statistics
  std::int64_t first_statistic = 0;     // where a contribution's statistics start
  std::size_t coefficients = 0;         // bytes into Context::coefficients
  bool learns = true;                   // false: it computes with the running statistics in training too
};

// Per-channel factors, each as a row of the kernels.
struct NormCoefficients {
  RepeatedChannels in_row;
  float *mean, *scale, *shift;   // forward: x * scale + shift
  float *factor, *bias, *slope;  // backward: NormGradient
};
std::size_t coefficient_bytes(int channels);
NormCoefficients coefficients_of(const NormLayer& layer, std::byte* coefficients);

// Fills the coefficients from the running statistics, for evaluation and for a norm that does not learn: its gradient
// is x's times scale.
void use_running_statistics(const NormLayer& layer, const float* parameters, const float* statistics,
                            std::byte* coefficients);

std::unique_ptr<Op> make_norm_statistics(const NormLayer& layer, const TensorKernels& kernels, TensorId input);
std::unique_ptr<Op> make_norm_apply(const NormLayer& layer, const TensorKernels& kernels, TensorId input,
                                    TensorId residual, bool relu, TensorId output);

struct NormGradientTensors {
  TensorId gradient = kNoTensor, gradient2 = kNoTensor;  // of the output; the second may be missing
  TensorId input = kNoTensor, output = kNoTensor;        // output: only with Mask::from_output
  TensorId masked = kNoTensor;                           // may be missing: then the second pass masks again
  Mask mask = Mask::none;
};
std::unique_ptr<Op> make_norm_gradient_sums(const NormLayer& layer, const TensorKernels& kernels,
                                            const NormGradientTensors& tensors);
// input_gradient = the gradient by the input, plus addend where there is one.
std::unique_ptr<Op> make_norm_gradient(const NormLayer& layer, const TensorKernels& kernels,
                                       const NormGradientTensors& tensors, TensorId addend, TensorId input_gradient);

}  // namespace dtrain::backend::cpu
