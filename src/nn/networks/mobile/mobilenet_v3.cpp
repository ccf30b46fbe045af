// Howard et al., "Searching for MobileNetV3", 2019, as torchvision writes it.
#include <span>

#include "../families.hpp"
#include "inverted_residual.hpp"

namespace dtrain::nn {
namespace {

constexpr auto kRe = ActivationKind::relu, kHs = ActivationKind::hard_swish;
constexpr BatchNorm kMobileNorm{.epsilon = 1e-3f, .momentum = 0.99f};

struct MobileBlock {
  int kernel, expanded, channels;
  bool squeezes;
  ActivationKind activation;
  int stride;
};
constexpr MobileBlock kLarge[] = {
    {3, 16, 16, false, kRe, 1},  {3, 64, 24, false, kRe, 2},  {3, 72, 24, false, kRe, 1},  {5, 72, 40, true, kRe, 2},
    {5, 120, 40, true, kRe, 1},  {5, 120, 40, true, kRe, 1},  {3, 240, 80, false, kHs, 2}, {3, 200, 80, false, kHs, 1},
    {3, 184, 80, false, kHs, 1}, {3, 184, 80, false, kHs, 1}, {3, 480, 112, true, kHs, 1}, {3, 672, 112, true, kHs, 1},
    {5, 672, 160, true, kHs, 2}, {5, 960, 160, true, kHs, 1}, {5, 960, 160, true, kHs, 1}};
constexpr MobileBlock kSmall[] = {{3, 16, 16, true, kRe, 2},  {3, 72, 24, false, kRe, 2}, {3, 88, 24, false, kRe, 1},
                                  {5, 96, 40, true, kHs, 2},  {5, 240, 40, true, kHs, 1}, {5, 240, 40, true, kHs, 1},
                                  {5, 120, 48, true, kHs, 1}, {5, 144, 48, true, kHs, 1}, {5, 288, 96, true, kHs, 2},
                                  {5, 576, 96, true, kHs, 1}, {5, 576, 96, true, kHs, 1}};

Graph build(const NetworkOptions& options, std::span<const MobileBlock> blocks, int dense) {
  const Activation activation{kHs};
  Chain net(options.name, options.image);
  int number = 0;
  const auto next = [&] { return fmt::format("features.{}", number++); };
  convolve_norm(net, next(), square_convolution(16, 3, 2, 1), activation, kMobileNorm);
  for (const MobileBlock& block : blocks) {
    const int quarter = block.expanded / 4;
    add_inverted_residual(net, next(),
                          {.kernel = block.kernel,
                           .stride = block.stride,
                           .expanded = block.expanded,
                           .channels = block.channels,
                           .squeezed = block.squeezes ? divisible_channels(quarter) : 0,
                           .activation = block.activation,
                           .gate = ActivationKind::hard_sigmoid,
                           .norm = kMobileNorm});
  }
  convolve_norm(net, next(), square_convolution(6 * net.shape().c, 1), activation, kMobileNorm);
  pool_all(net);
  net.then("classifier.0", Dense{dense}).then("classifier.1", activation).then("classifier.2", Dropout{0.2f});
  net.then("classifier.3", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace

Graph build_mobilenet_v3_small(const NetworkOptions& options) { return build(options, kSmall, 1024); }
Graph build_mobilenet_v3_large(const NetworkOptions& options) { return build(options, kLarge, 1280); }

}  // namespace dtrain::nn
