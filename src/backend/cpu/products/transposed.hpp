// A transposed convolution whose kernel is as large as its stride: each pixel becomes stride x stride pixels. It is a
// dense layer on each pixel, whose outputs are the points of that square, row after row, each with its channels; what
// remains is to put them in their places. Both are done block after block of pixels, so that a block stays in the
// cache. Of a value of regions the rows below the last region are not computed: results and gradients there are 0.
#pragma once

#include <memory>

#include "../detection/region_rows.hpp"
#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

// The shape of `layer` is that of the dense layer, its `spread` the stride; `in` is the shape of the source, whose
// `rows` count.
std::unique_ptr<Op> make_transposed_forward(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows,
                                            TensorId source, TensorId result);
std::unique_ptr<Op> make_transposed_backward_data(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows,
                                                  TensorId gradient, TensorId source_gradient);
std::unique_ptr<Op> make_transposed_backward_weights(ProductLayer& layer, const nn::Shape& in, const RegionRows& rows,
                                                     TensorId source, TensorId gradient);

}  // namespace dtrain::backend::cpu
