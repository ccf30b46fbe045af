// What torchvision's networks are made of. Nodes have the names of its modules, so that its weights fit by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

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

// A linear layer on each token or pixel.
inline Convolution dense_of_pixels(int out) {
  Convolution dense = biased(square_convolution(out, 1));
  dense.is_dense = true;
  return dense;
}

// A Sequential of a convolution, its batch norm and perhaps an activation, numbered from 0.
inline void convolve_norm(Chain& net, const std::string& name, const Convolution& convolution,
                          std::optional<Activation> activation = kRelu, const BatchNorm& norm = kTorchBatchNorm) {
  net.then(name + ".0", convolution).then(name + ".1", norm);
  if (activation) net.then(name + ".2", *activation);
}

// What the Inception networks call BasicConv2d.
inline void basic_convolution(Chain& net, const std::string& name, const Convolution& convolution) {
  net.then(name + ".conv", convolution).then(name + ".bn", BatchNorm{.epsilon = 1e-3f}).then(name + ".relu", kRelu);
}

// Several ways from one layer, whose channels are put together.
class Branches {
 public:
  explicit Branches(Chain& net) : net_(net), start_(net.last()) {}
  // Ends the way from the start to the last layer.
  void end() {
    ends_.push_back(net_.last());
    net_.go_back_to(start_);
  }
  void join(const std::string& name) { net_.concat(name, ends_); }

 private:
  Chain& net_;
  int start_;
  std::vector<int> ends_;
};

// Hu et al., "Squeeze-and-Excitation Networks", 2018: each channel times what two convolutions make of all means.
inline void squeeze_excite(Chain& net, const std::string& name, int squeezed, ActivationKind inner,
                           ActivationKind gate) {
  const int input = net.last(), channels = net.shape().c;
  net.then(name + ".avgpool", global_average()).then(name + ".fc1", biased(square_convolution(squeezed, 1)));
  net.then(name + ".activation", Activation{inner}).then(name + ".fc2", biased(square_convolution(channels, 1)));
  net.then(name + ".gate", Activation{gate}).scale_channels(name + ".multiply", input);
}

// The probability that block `number` of so many is left out: 0 for the first, `last` for the last.
inline float rising_drop(float last, int number, int blocks) {
  return blocks < 2 ? 0.0f : last * static_cast<float>(number) / static_cast<float>(blocks - 1);
}

// Adds `input` to the last layer, which training leaves out of a sample with probability `drop`.
inline void add_residual(Chain& net, const std::string& name, int input, float drop) {
  if (drop > 0) net.then(name + ".stochastic_depth", Dropout{.p = drop, .whole_samples = true});
  net.plus(name + ".add", input);
}

// From pixels to the mean of each channel.
inline void pool_all(Chain& net) { net.then("avgpool", global_average()).then("flatten", Flatten{}); }

}  // namespace dtrain::nn
