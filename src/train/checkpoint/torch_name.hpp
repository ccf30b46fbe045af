// What PyTorch calls the tensors of a network whose nodes have PyTorch's names: for exports, and for weights that are
// read.
#pragma once

#include <string>

#include <dtrain/nn/graph.hpp>

namespace dtrain::train {

// What follows the name of the node: ".weight", ".running_mean"; empty for a node that is nothing but a tensor.
const char* torch_ending(const nn::Node& node, const nn::TensorView& view);
// "layer1.0.bn1.running_mean".
std::string torch_name(const nn::Node& node, const nn::TensorView& view);

}  // namespace dtrain::train
