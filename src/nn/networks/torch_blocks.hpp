// What torchvision's networks are made of. Nodes have the names of its modules, so that its weights fit by name.
#pragma once

#include <optional>
#include <string>

#include "chain.hpp"

namespace dtrain::nn {

inline constexpr BatchNorm kTorchBatchNorm{.epsilon = 1e-5f};

inline Convolution grouped_convolution(int out, int kernel, int stride, int groups) {
  Convolution convolution = square_convolution(out, kernel, stride, kernel / 2);
  convolution.groups = groups;
  return convolution;
}

inline Convolution biased(Convolution convolution) {
  convolution.bias = true;
  return convolution;
}

// A Sequential of a convolution, its batch norm and perhaps an activation, numbered from 0.
inline void convolve_norm(Chain& net, const std::string& name, const Convolution& convolution,
                          std::optional<Activation> activation = kRelu, const BatchNorm& norm = kTorchBatchNorm) {
  net.then(name + ".0", convolution).then(name + ".1", norm);
  if (activation) net.then(name + ".2", *activation);
}

// From pixels to the mean of each channel.
inline void pool_all(Chain& net) { net.then("avgpool", global_average()).then("flatten", Flatten{}); }

}  // namespace dtrain::nn
