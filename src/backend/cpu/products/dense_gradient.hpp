// The weights' gradient of a large dense layer. It is far larger than what it is made of, so the time is that of
// writing it: own kernels write each element once, where the flat buffer wants it. oneDNN writes a layout of its own,
// which then takes a pass to be brought into that order, and needs memory for it.
#pragma once

#include <memory>

#include "../bfloat16.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// Pure. For dense layers whose gradient no cache holds, in both types: products of bfloat16 numbers are exact in
// float32, and with few samples the arithmetic is not what takes the time.
bool has_dense_gradient(const Product& p, const CpuModel& cpu);

// For such a layer.
std::unique_ptr<Op> make_dense_gradient(const ProductLayer& layer, TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
