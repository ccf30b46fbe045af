// A 3x3 convolution in bfloat16 and its gradient by the source, by AMX tiles: see kernels/tile_convolution.hpp.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. Where this is faster than oneDNN 2.6, whose gradients by the source with a stride of two take 2.3 to 2.9 times
// as long, and whose tiles have a row for each pixel of a row of the picture: half are empty for pictures of 7 or 8
// pixels. Forward that costs only where the weights pass out of the second cache.
bool has_tile_convolution(const Product& p, Direction direction, const CpuModel& cpu);

// For such a layer: forward from the source to the result, backward from the result's gradient to the source's.
std::unique_ptr<Op> make_tile_convolution(ProductLayer& layer, Direction direction, TensorId operand, TensorId result);

}  // namespace dtrain::backend::cpu
