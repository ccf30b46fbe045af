// The layers of transformers and of networks that are built like them. Their values are float32 or bfloat16, what they
// sum is float32.
#pragma once

#include "../program.hpp"

namespace dtrain::backend::cpu {

// Where a layer's two vectors stand in the flat buffers.
struct GainShift {
  std::int64_t gamma = 0, beta = 0;
  bool learns = true;
};

// `moments` takes two floats for each pixel, which the gradient reads; kNoTensor in evaluation.
std::unique_ptr<Op> make_layer_norm(const nn::LayerNorm& layer, const GainShift& at, const TensorKernels& kernels,
                                    TensorId input, TensorId output, TensorId moments);
std::unique_ptr<Op> make_layer_norm_gradient(const nn::LayerNorm& layer, const GainShift& at, int channels,
                                             const TensorKernels& kernels, TensorId input, TensorId gradient,
                                             TensorId moments, TensorId input_gradient);

std::unique_ptr<Op> make_local_response_norm(const nn::LocalResponseNorm& layer, int channels,
                                             const TensorKernels& kernels, TensorId input, TensorId output);
std::unique_ptr<Op> make_local_response_norm_gradient(const nn::LocalResponseNorm& layer, int channels,
                                                      const TensorKernels& kernels, TensorId input, TensorId gradient,
                                                      TensorId input_gradient);

// Each channel times its gain; forward, and backward for the input.
std::unique_ptr<Op> make_layer_scale(const nn::Shape& shape, std::int64_t gain, const TensorKernels& kernels,
                                     TensorId input, TensorId output);
std::unique_ptr<Op> make_gain_gradient(const nn::Shape& shape, std::int64_t gain, const TensorKernels& kernels,
                                       TensorId input, TensorId gradient);

// A token before the others.
std::unique_ptr<Op> make_class_token(std::int64_t token, const TensorKernels& kernels, TensorId input, TensorId output);
std::unique_ptr<Op> make_class_token_gradient(TensorId gradient, TensorId input_gradient);
std::unique_ptr<Op> make_position(std::int64_t position, const TensorKernels& kernels, TensorId input, TensorId output);
// The sums over all samples of the first `size` values of each.
std::unique_ptr<Op> make_token_sums(std::int64_t to, int size, const TensorKernels& kernels, TensorId gradient);
std::unique_ptr<Op> make_first_token(TensorId input, TensorId output);
std::unique_ptr<Op> make_first_token_gradient(TensorId gradient, TensorId input_gradient);

std::unique_ptr<Op> make_attention(const nn::Attention& layer, const nn::Shape& in, const TensorKernels& kernels,
                                   TensorId input, TensorId output);
std::unique_ptr<Op> make_attention_gradient(const nn::Attention& layer, const nn::Shape& in,
                                            const TensorKernels& kernels, TensorId input, TensorId gradient,
                                            TensorId input_gradient);

}  // namespace dtrain::backend::cpu
