// Convolutions and dense layers in a program: one operation forward, up to three backward.
#pragma once

#include <memory>

#include "../program.hpp"
#include "product_layer.hpp"

namespace dtrain::backend::cpu {

std::unique_ptr<Op> make_product_forward(ProductLayer& layer, TensorId source, TensorId result);
std::unique_ptr<Op> make_product_backward_data(ProductLayer& layer, TensorId gradient, TensorId source_gradient);
std::unique_ptr<Op> make_product_backward_weights(ProductLayer& layer, TensorId source, TensorId gradient);
// `bias`: its place in the parameters, a number for each channel of the gradient.
std::unique_ptr<Op> make_bias_gradient(Part bias, const TensorKernels& kernels, TensorId gradient);

}  // namespace dtrain::backend::cpu
