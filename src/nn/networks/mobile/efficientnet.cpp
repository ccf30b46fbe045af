// Tan and Le, "EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks", 2019, as torchvision writes
// it.
#include "../families.hpp"
#include "inverted_residual.hpp"

namespace dtrain::nn {
namespace {

struct Stage {
  int expansion, kernel, stride, channels, blocks;
};
constexpr Stage kStages[] = {{1, 3, 1, 16, 1},  {6, 3, 2, 24, 2},  {6, 5, 2, 40, 2}, {6, 3, 2, 80, 3},
                             {6, 5, 1, 112, 3}, {6, 5, 2, 192, 4}, {6, 3, 1, 320, 1}};
constexpr int kStem = 32, kSqueeze = 4;

}  // namespace

Graph build_efficientnet(const NetworkOptions& options, const Efficientnet& variant) {
  const auto widened = [&](int channels) { return divisible_channels(channels * variant.width_tenths / 10.0); };
  const Activation activation{ActivationKind::silu};
  Chain net(options.name, options.image);
  convolve_norm(net, "features.0", square_convolution(widened(kStem), 3, 2, 1), activation);
  const auto deepened = [&](int blocks) { return (blocks * variant.depth_tenths + 9) / 10; };
  int number = 0, blocks_before = 0, all_blocks = 0;
  for (const Stage& stage : kStages) all_blocks += deepened(stage.blocks);
  for (const Stage& stage : kStages) {
    ++number;
    const int blocks = deepened(stage.blocks);
    for (int block = 0; block < blocks; ++block, ++blocks_before) {
      const int in_channels = net.shape().c;
      add_inverted_residual(
          net, fmt::format("features.{}.{}", number, block),
          {.kernel = stage.kernel,
           .stride = block == 0 ? stage.stride : 1,
           .expanded = in_channels * stage.expansion,
           .channels = widened(stage.channels),
           .squeezed = in_channels / kSqueeze,
           .activation = ActivationKind::silu,
           .squeeze_activation = ActivationKind::silu,
           .drop = options.drop_path * static_cast<float>(blocks_before) / static_cast<float>(all_blocks)});
    }
  }
  convolve_norm(net, fmt::format("features.{}", number + 1), square_convolution(4 * net.shape().c, 1), activation);
  pool_all(net);
  net.then("classifier.0", Dropout{static_cast<float>(variant.dropout_tenths) / 10});
  net.then("classifier.1", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
