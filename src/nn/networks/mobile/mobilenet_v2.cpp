// Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018, as torchvision writes it.
#include <fmt/format.h>

#include "../families.hpp"
#include "../torch_blocks.hpp"

namespace dtrain::nn {
namespace {

// Blocks in a row: how many times the first convolution widens, channels they leave, their number, the first's stride.
struct BottleneckStage {
  int expansion, channels, blocks, stride;
};
constexpr BottleneckStage kBottleneckStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

void add_block(Chain& net, const std::string& name, const BottleneckStage& stage, int stride) {
  const int input = net.last(), channels = net.shape().c, wide = channels * stage.expansion;
  int part = 0;
  const auto next = [&] { return fmt::format("{}.conv.{}", name, part++); };
  if (stage.expansion != 1) convolve_norm(net, next(), square_convolution(wide, 1), kRelu6);
  convolve_norm(net, next(), grouped_convolution(wide, 3, stride, wide), kRelu6);
  net.then(next(), square_convolution(stage.channels, 1)).then(next(), kTorchBatchNorm);
  if (stride == 1 && channels == stage.channels) net.plus(name + ".add", input);
}

}  // namespace

Graph build_mobilenet_v2(const NetworkOptions& options) {
  Chain net(options.name, options.image);
  int number = 0;
  const auto next = [&] { return fmt::format("features.{}", number++); };
  convolve_norm(net, next(), square_convolution(32, 3, 2, 1), kRelu6);
  for (const BottleneckStage& stage : kBottleneckStages) {
    for (int block = 0; block < stage.blocks; ++block) add_block(net, next(), stage, block == 0 ? stage.stride : 1);
  }
  convolve_norm(net, next(), square_convolution(1280, 1), kRelu6);
  pool_all(net);
  net.then("classifier.0", Dropout{0.2f}).then("classifier.1", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
