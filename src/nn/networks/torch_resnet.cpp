// torchvision's residual networks, which others call v1.5: those of He et al. 2015, but a bottleneck halves the image
// in its 3x3 convolution, and the first stage of basic blocks does not project. The stem is the same for images of any
// size. Nodes have the names of torchvision's modules, so that its weights fit by name.
#include <fmt/format.h>

#include "chain.hpp"
#include "families.hpp"
#include "residual_plan.hpp"

namespace dtrain::nn {
namespace {

constexpr BatchNorm kTorchBatchNorm{.epsilon = 1e-5f};

// One block: its place, and the shortcut that it needs.
struct Block {
  std::string name;  // torchvision's: layer1.0
  int channels = 0;
  int stride = 1;
  bool projects = false;
};

std::vector<Block> blocks_of(const ResidualPlan& plan) {
  std::vector<Block> blocks;
  int stage = 0, number = 0;
  for (const ResidualUnit& unit : plan.units) {
    if (unit.projects) ++stage, number = 0;
    blocks.push_back({.name = fmt::format("layer{}.{}", stage, number++),
                      .channels = unit.channels,
                      .stride = unit.stride,
                      .projects = unit.projects && (plan.bottleneck || stage > 1)});
  }
  return blocks;
}

void add_block(Chain& net, const Block& block, bool bottleneck) {
  const auto convolve = [&](int k, const Convolution& convolution) {
    net.then(fmt::format("{}.conv{}", block.name, k), convolution);
    net.then(fmt::format("{}.bn{}", block.name, k), kTorchBatchNorm);
  };
  const auto rectify = [&](int k) { net.then(fmt::format("{}.relu{}", block.name, k), kRelu); };
  const int input = net.last();
  if (bottleneck) {
    convolve(1, square_convolution(block.channels / 4, 1));
    rectify(1);
    convolve(2, square_convolution(block.channels / 4, 3, block.stride, 1));
    rectify(2);
    convolve(3, square_convolution(block.channels, 1));
  } else {
    convolve(1, square_convolution(block.channels, 3, block.stride, 1));
    rectify(1);
    convolve(2, square_convolution(block.channels, 3, 1, 1));
  }
  int shortcut = input;
  if (block.projects) {
    const int branch = net.last();
    net.go_back_to(input);
    net.then(block.name + ".downsample.0", square_convolution(block.channels, 1, block.stride));
    shortcut = net.then(block.name + ".downsample.1", kTorchBatchNorm).last();
    net.go_back_to(branch);
  }
  net.plus(block.name + ".add", shortcut);
  rectify(3);
}

}  // namespace

Graph build_torch_resnet(const NetworkOptions& options) {
  const ResidualPlan plan = plan_imagenet_network(options);
  Chain net(fmt::format("{}-{}", options.name, plan.depth), options.image);
  net.then("conv1", square_convolution(plan.stem_channels, 7, 2, 3)).then("bn1", kTorchBatchNorm);
  net.then("relu", kRelu).then("maxpool", max_pooling(3, 2, 1));
  for (const Block& block : blocks_of(plan)) add_block(net, block, plan.bottleneck);
  net.then("avgpool", global_average()).then("flatten", Flatten{}).then("fc", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
