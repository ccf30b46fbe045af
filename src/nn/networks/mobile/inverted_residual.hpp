// The block of MobileNetV3 and EfficientNet: wider, depthwise, perhaps squeezed and excited, narrower.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "../torch_blocks.hpp"

namespace dtrain::nn {

struct InvertedResidual {
  int kernel = 3, stride = 1;
  int expanded = 0;  // channels between the 1x1 convolutions
  int channels = 0;  // of the output
  int squeezed = 0;  // channels of the squeeze-and-excitation, 0 for none
  ActivationKind activation = ActivationKind::relu;
  ActivationKind squeeze_activation = ActivationKind::relu, gate = ActivationKind::sigmoid;
  BatchNorm norm = kTorchBatchNorm;
  float drop = 0;  // see add_residual
};

// `name` is the block's; its layers are in the Sequential `block` of it.
inline void add_inverted_residual(Chain& net, const std::string& name, const InvertedResidual& block) {
  const int input = net.last(), in_channels = net.shape().c;
  const Activation activation{block.activation};
  int part = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", name, part++); };
  if (block.expanded != in_channels) {
    convolve_norm(net, next(), square_convolution(block.expanded, 1), activation, block.norm);
  }
  convolve_norm(net, next(), grouped_convolution(block.expanded, block.kernel, block.stride, block.expanded),
                activation, block.norm);
  if (block.squeezed > 0) squeeze_excite(net, next(), block.squeezed, block.squeeze_activation, block.gate);
  convolve_norm(net, next(), square_convolution(block.channels, 1), std::nullopt, block.norm);
  if (block.stride == 1 && block.channels == in_channels) add_residual(net, name, input, block.drop);
}

// The multiple of 8 that is nearest to a number of channels, and not less than nine tenths of it.
inline int divisible_channels(double channels) {
  const int nearest = std::max(8, static_cast<int>(channels + 4) / 8 * 8);
  return nearest < 0.9 * channels ? nearest + 8 : nearest;
}

}  // namespace dtrain::nn
