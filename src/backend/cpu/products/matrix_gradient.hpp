// The weights' gradient of a 1x1 convolution: the transposed gradient times the source, by own kernels in float32
// straight into the contribution.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. Where own kernels are faster than oneDNN 2.6.3, which sums in a layout of its own: for tokens and regions
// (ViT-B's take 0.62 to 0.77 of its time), and with AVX-512 for layers of many channels (ResNet-50's from 256 x 1024
// on: 0.43 to 1.0). For few channels, as in ResNet-50's first stages, they take 1.0 to 2.0 of it.
bool has_matrix_gradient(const Product& p, const CpuModel& cpu);

// For such a layer.
std::unique_ptr<Op> make_matrix_gradient(const ProductLayer& layer, TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
