// The weights' gradient of a 1x1 convolution over tokens or regions in float32: the transposed gradient times the
// source, by own kernels straight into the contribution.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. Where own kernels are faster than oneDNN 2.6.3, which sums in a layout of its own: ViT-B's take 0.62 to 0.77 of
// its time. For the pictures of ResNet-50 they take 1.0 to 1.4 of it.
bool has_matrix_gradient(const Product& p, const CpuModel& cpu);

// For such a layer.
std::unique_ptr<Op> make_matrix_gradient(const ProductLayer& layer, TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
