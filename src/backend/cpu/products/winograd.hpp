// Convolutions of 3x3 by minimal filtering: see kernels/fused_kernels.hpp. A quarter of the multiplications, so it
// passes what is the limit of a library that multiplies directly. It computes in float32, also on tensors of bfloat16.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../detection/region_rows.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. Where this is faster than oneDNN's direct convolution: forward and by the data; and by the weights. In bfloat16
// on chips without AMX, whose other instructions for it multiply twice as fast as float32's at most.
bool filters_minimally(const Product& p, const CpuModel& cpu);
bool sums_minimally(const Product& p, const CpuModel& cpu);

// For such a layer. Of a value of regions the rows below the last region are not computed: results and gradients there
// are 0.
std::unique_ptr<Op> make_winograd_forward(ProductLayer& layer, TensorId source, TensorId result,
                                          const RegionRows& rows);
std::unique_ptr<Op> make_winograd_backward_data(ProductLayer& layer, TensorId gradient, TensorId source_gradient,
                                                const RegionRows& rows);
std::unique_ptr<Op> make_winograd_backward_weights(ProductLayer& layer, TensorId source, TensorId gradient,
                                                   const RegionRows& rows);

}  // namespace dtrain::backend::cpu
