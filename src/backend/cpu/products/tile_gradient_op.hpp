// The weights' gradient of a 3x3 convolution in bfloat16 by AMX tiles: see kernels/tile_gradient.hpp. oneDNN 2.6's
// takes 1.5 to 4 times as long.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure.
bool has_tile_gradient(const Product& p, const CpuModel& cpu);

// For such a layer.
std::unique_ptr<Op> make_tile_gradient(const ProductLayer& layer, TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
