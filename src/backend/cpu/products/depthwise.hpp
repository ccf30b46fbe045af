// The weights' gradient of a depthwise convolution, where each channel has a kernel of its own, by own kernels.
#pragma once

#include <memory>

#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. True for a depthwise convolution where own kernels are faster than oneDNN 2.6.3: in the step of EfficientNet-B0
// at 224 pixels on a Xeon of model 167 they take 24 ms instead of 736 for kernels of 5x5 in float32, 21 of 1,280
// in bfloat16; 26 of 29 for 3x3 in bfloat16, but 33 of 25 in float32.
bool has_own_weights_gradient(const Product& p);

// For such a layer.
std::unique_ptr<Op> make_depthwise_weights_gradient(const ProductLayer& layer, const TensorKernels& kernels,
                                                    TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
