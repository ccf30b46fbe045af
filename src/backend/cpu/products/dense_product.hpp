// Large dense layers forward and by their source, on the weights as the flat buffer has them. oneDNN wants a copy of
// them in a layout of its own for each direction, made anew each step: for few samples, to write that copy takes as
// long as to multiply by it, and it takes as much memory as the weights.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. For dense layers with a gradient of their own (dense_gradient.hpp), unless the CPU multiplies bfloat16 numbers,
// of which a copy is half as large.
bool has_dense_product(const Product& p, const CpuModel& cpu);

// For such a layer.
std::unique_ptr<Op> make_dense_forward(const ProductLayer& layer, TensorId source, TensorId result);
std::unique_ptr<Op> make_dense_backward_data(const ProductLayer& layer, TensorId gradient, TensorId source_gradient);

}  // namespace dtrain::backend::cpu
