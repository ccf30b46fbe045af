// Liu et al., "A ConvNet for the 2020s", 2022, as torchvision writes it.
#include <fmt/format.h>

#include <numeric>

#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

constexpr LayerNorm kTorchLayerNorm{.epsilon = 1e-6f};
constexpr int kPatch = 4, kWiden = 4;

void add_convnext_block(Chain& net, const std::string& name, float drop) {
  const int input = net.last(), channels = net.shape().c;
  net.then(name + ".block.0", biased(grouped_convolution(channels, 7, 1, channels)));
  net.then(name + ".block.2", kTorchLayerNorm);
  net.then(name + ".block.3", dense_of_pixels(kWiden * channels));
  net.then(name + ".block.4", Activation{ActivationKind::gelu});
  net.then(name + ".block.5", dense_of_pixels(channels));
  net.then(name + ".layer_scale", LayerScale{.initial = 1e-6f});
  add_residual(net, name, input, drop);
}

}  // namespace

Graph build_convnext(const NetworkOptions& options, const Convnext& variant) {
  Chain net(options.name, options.image);
  const int blocks = std::accumulate(variant.blocks.begin(), variant.blocks.end(), 0);
  int part = 0, number = 0;
  for (std::size_t stage = 0; stage < variant.blocks.size(); ++stage) {
    const std::string before = fmt::format("features.{}.", part++);
    if (stage == 0) {
      net.then(before + "0", biased(square_convolution(variant.channels[stage], kPatch, kPatch)));
      net.then(before + "1", kTorchLayerNorm);
    } else {
      net.then(before + "0", kTorchLayerNorm);
      net.then(before + "1", biased(square_convolution(variant.channels[stage], 2, 2)));
    }
    for (int block = 0; block < variant.blocks[stage]; ++block, ++number) {
      add_convnext_block(net, fmt::format("features.{}.{}", part, block),
                         rising_drop(options.drop_path, number, blocks));
    }
    ++part;
  }
  net.then("avgpool", global_average()).then("classifier.0", kTorchLayerNorm).then("classifier.1", Flatten{});
  net.then("classifier.2", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
