// The operations that need no primitive and no statistics: each works sample by sample.
#pragma once

#include <memory>

#include "program.hpp"

namespace dtrain::backend::cpu {

// The batch's images as a channels-last tensor.
std::unique_ptr<Op> make_load_images(const TensorKernels& kernels, TensorId output);

std::unique_ptr<Op> make_activation(nn::ActivationKind kind, const TensorKernels& kernels, TensorId input,
                                    TensorId output);
// `by`: the activation's output, or its input where slope_is_by_input().
std::unique_ptr<Op> make_activation_gradient(nn::ActivationKind kind, const TensorKernels& kernels, TensorId gradient,
                                             TensorId by, TensorId input_gradient);

std::unique_ptr<Op> make_add(const TensorKernels& kernels, TensorId a, TensorId b, TensorId sum);

std::unique_ptr<Op> make_pooling(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out,
                                 const TensorKernels& kernels, TensorId input, TensorId output);
std::unique_ptr<Op> make_pooling_gradient(const nn::Pooling& layer, const nn::Shape& in, const nn::Shape& out,
                                          const TensorKernels& kernels, TensorId input, TensorId gradient,
                                          TensorId input_gradient);

// Forward and backward are the same; both tensors are of the kernels' type.
std::unique_ptr<Op> make_scale(const nn::Scale& layer, const TensorKernels& kernels, TensorId input, TensorId output);

// The channels of one input after those of the other, in each pixel.
std::unique_ptr<Op> make_concat(const std::vector<TensorId>& inputs, TensorId output);
// Channels [first_channel, ...) of the gradient, as many as the result has.
std::unique_ptr<Op> make_concat_gradient(TensorId gradient, int first_channel, TensorId input_gradient);

// Each channel of `shape` times its factor; forward, and backward for the input. `factors` has one pixel.
std::unique_ptr<Op> make_multiply(const nn::Shape& shape, const TensorKernels& kernels, TensorId input,
                                  TensorId factors, TensorId output);
std::unique_ptr<Op> make_factor_gradient(const nn::Shape& shape, const TensorKernels& kernels, TensorId input,
                                         TensorId gradient, TensorId factor_gradient);

// Forward and backward are the same: x times 0 or 1 / (1-p). `shape` gives the order of the mask's elements.
std::unique_ptr<Op> make_dropout(const nn::Dropout& layer, int node, const nn::Shape& shape,
                                 const TensorKernels& kernels, TensorId input, TensorId output);

// Channels-last to one list in c, h, w order, and back.
std::unique_ptr<Op> make_flatten(const nn::Shape& shape, const TensorKernels& kernels, TensorId input, TensorId output);
std::unique_ptr<Op> make_flatten_gradient(const nn::Shape& shape, const TensorKernels& kernels, TensorId gradient,
                                          TensorId input_gradient);

// Writes the contribution's metrics and the gradient by the logits; each tensor has the kernels of its type.
std::unique_ptr<Op> make_softmax_loss(const nn::SoftmaxLoss& loss, int top_k, std::int64_t first_metric,
                                      const TensorKernels& logit_kernels, const TensorKernels& kernels, TensorId logits,
                                      TensorId gradient);

// Ends a segment, so that what follows goes on in chunks of its own size.
std::unique_ptr<Op> make_boundary();

// Copies the logits to Context::logits.
std::unique_ptr<Op> make_store_logits(const TensorKernels& logit_kernels, TensorId logits);

}  // namespace dtrain::backend::cpu
