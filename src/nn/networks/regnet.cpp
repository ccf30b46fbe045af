// Radosavovic et al., "Designing Network Design Spaces", 2020, as torchvision writes it.
#include <fmt/format.h>

#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

constexpr int kRegnetStem = 32, kRegnetSqueeze = 4;

void add_block(Chain& net, const std::string& name, int channels, int stride, const Regnet& variant) {
  const int input = net.last(), in_channels = net.shape().c;
  convolve_norm(net, name + ".f.a", square_convolution(channels, 1));
  convolve_norm(net, name + ".f.b", grouped_convolution(channels, 3, stride, channels / variant.group_width));
  if (variant.squeezes) {
    squeeze_excite(net, name + ".f.se", in_channels / kRegnetSqueeze, ActivationKind::relu, ActivationKind::sigmoid);
  }
  convolve_norm(net, name + ".f.c", square_convolution(channels, 1), std::nullopt);
  int shortcut = input;
  if (stride != 1 || channels != in_channels) {
    const int branch = net.last();
    net.go_back_to(input);
    convolve_norm(net, name + ".proj", square_convolution(channels, 1, stride), std::nullopt);
    shortcut = net.last();
    net.go_back_to(branch);
  }
  net.plus(name + ".add", shortcut).then(name + ".activation", kRelu);
}

}  // namespace

Graph build_regnet(const NetworkOptions& options, const Regnet& variant) {
  Chain net(options.name, options.image);
  convolve_norm(net, "stem", square_convolution(kRegnetStem, 3, 2, 1));
  for (std::size_t stage = 0; stage < variant.channels.size(); ++stage) {
    for (int block = 0; block < variant.blocks[stage]; ++block) {
      add_block(net, fmt::format("trunk_output.block{0}.block{0}-{1}", stage + 1, block), variant.channels[stage],
                block == 0 ? 2 : 1, variant);
    }
  }
  pool_all(net);
  net.then("fc", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
