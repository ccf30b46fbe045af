// torchvision's residual networks, which others call v1.5: those of He et al. 2015, but a bottleneck halves the image
// in its 3x3 convolution, and the first stage of basic blocks does not project. The stem is the same for images of any
// size. Wider bottlenecks: Zagoruyko and Komodakis, "Wide Residual Networks", 2016; with groups: Xie et al.,
// "Aggregated Residual Transformations for Deep Neural Networks", 2016. With squeeze-and-excitation as timm has them.
#include <fmt/format.h>

#include "families.hpp"
#include "residual_plan.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

// One block: its place, and the shortcut that it needs.
struct Block {
  std::string name;  // torchvision's: layer1.0
  int channels = 0;
  int stride = 1;
  bool projects = false;
};

std::vector<Block> blocks_of(const ResidualPlan& plan, const std::string& prefix) {
  std::vector<Block> blocks;
  int stage = 0, number = 0;
  for (const ResidualUnit& unit : plan.units) {
    if (unit.projects) ++stage, number = 0;
    blocks.push_back({.name = fmt::format("{}layer{}.{}", prefix, stage, number++),
                      .channels = unit.channels,
                      .stride = unit.stride,
                      .projects = unit.projects && (plan.bottleneck || stage > 1)});
  }
  return blocks;
}

void add_block(Chain& net, const Block& block, bool bottleneck, const TorchResnet& variant) {
  const auto convolve = [&](int k, const Convolution& convolution) {
    net.then(fmt::format("{}.conv{}", block.name, k), convolution);
    net.then(fmt::format("{}.bn{}", block.name, k), kTorchBatchNorm);
  };
  const auto rectify = [&](int k) { net.then(fmt::format("{}.relu{}", block.name, k), kRelu); };
  const int input = net.last();
  if (bottleneck) {
    const int inner = block.channels / 4 * variant.group_width / 64 * variant.groups;
    convolve(1, square_convolution(inner, 1));
    rectify(1);
    convolve(2, grouped_convolution(inner, 3, block.stride, variant.groups));
    rectify(2);
    convolve(3, square_convolution(block.channels, 1));
    if (variant.squeezes) {
      squeeze_excite(net, block.name + ".se", block.channels / 16, ActivationKind::relu, ActivationKind::sigmoid);
    }
  } else {
    convolve(1, square_convolution(block.channels, 3, block.stride, 1));
    rectify(1);
    convolve(2, square_convolution(block.channels, 3, 1, 1));
  }
  int shortcut = input;
  if (block.projects) {
    const int branch = net.last();
    net.go_back_to(input);
    convolve_norm(net, block.name + ".downsample", square_convolution(block.channels, 1, block.stride), std::nullopt);
    shortcut = net.last();
    net.go_back_to(branch);
  }
  net.plus(block.name + ".add", shortcut);
  rectify(3);
}

void add_stem(Chain& net, const std::string& prefix, int channels) {
  net.then(prefix + "conv1", square_convolution(channels, 7, 2, 3)).then(prefix + "bn1", kTorchBatchNorm);
  net.then(prefix + "relu", kRelu).then(prefix + "maxpool", max_pooling(3, 2, 1));
}

}  // namespace

std::vector<int> add_torch_resnet(Chain& net, const std::string& prefix, int depth) {
  const ResidualPlan plan = plan_imagenet_network({.name = "resnet", .num_layers = depth});
  add_stem(net, prefix, plan.stem_channels);
  std::vector<int> ends;
  int channels = 0;
  for (const Block& block : blocks_of(plan, prefix)) {
    if (block.channels != channels && channels != 0) ends.push_back(net.last());
    channels = block.channels;
    add_block(net, block, plan.bottleneck, {});
  }
  ends.push_back(net.last());
  return ends;
}

Graph build_torch_resnet(const NetworkOptions& options, const TorchResnet& variant) {
  NetworkOptions of_depth = options;
  if (variant.depth != 0) of_depth.num_layers = variant.depth;
  const ResidualPlan plan = plan_imagenet_network(of_depth);
  Chain net(variant.depth != 0 ? options.name : fmt::format("{}-{}", options.name, plan.depth), options.image);
  add_stem(net, "", plan.stem_channels);
  for (const Block& block : blocks_of(plan, "")) add_block(net, block, plan.bottleneck, variant);
  pool_all(net);
  net.then("fc", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
