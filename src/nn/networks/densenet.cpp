// Huang et al., "Densely Connected Convolutional Networks", 2017, as torchvision writes it.
#include <fmt/format.h>

#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

constexpr int kBottleneck = 4;  // channels of the 1x1 convolution, times the growth

// Two convolutions behind their norms; their channels follow those of the input.
void add_layer(Chain& net, const std::string& name, int growth) {
  const int input = net.last();
  const auto convolve = [&](int k, const Convolution& convolution) {
    net.then(fmt::format("{}.norm{}", name, k), kTorchBatchNorm).then(fmt::format("{}.relu{}", name, k), kRelu);
    net.then(fmt::format("{}.conv{}", name, k), convolution);
  };
  convolve(1, square_convolution(kBottleneck * growth, 1));
  convolve(2, square_convolution(growth, 3, 1, 1));
  net.concat(name + ".concat", {input, net.last()});
}

// Half as many channels, half as large.
void add_transition(Chain& net, const std::string& name) {
  const int channels = net.shape().c / 2;
  net.then(name + ".norm", kTorchBatchNorm).then(name + ".relu", kRelu);
  net.then(name + ".conv", square_convolution(channels, 1));
  net.then(name + ".pool",
           Pooling{.kind = PoolingKind::average, .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2});
}

}  // namespace

Graph build_densenet(const NetworkOptions& options, const Densenet& variant) {
  Chain net(options.name, options.image);
  net.then("features.conv0", square_convolution(variant.first, 7, 2, 3)).then("features.norm0", kTorchBatchNorm);
  net.then("features.relu0", kRelu).then("features.pool0", max_pooling(3, 2, 1));
  int block = 0;
  for (const int layers : variant.layers) {
    if (++block > 1) add_transition(net, fmt::format("features.transition{}", block - 1));
    for (int layer = 1; layer <= layers; ++layer) {
      add_layer(net, fmt::format("features.denseblock{}.denselayer{}", block, layer), variant.growth);
    }
  }
  net.then("features.norm5", kTorchBatchNorm).then("relu", kRelu);
  pool_all(net);
  net.then("classifier", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
