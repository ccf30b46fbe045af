// The weights' gradient of a network's first convolution in bfloat16 by AMX tiles: see kernels/tile_stem.hpp.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure.
bool has_tile_stem(const Product& p, const CpuModel& cpu);

// For such a layer.
std::unique_ptr<Op> make_tile_stem(const ProductLayer& layer, TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
