// A small network that learns CIFAR-10 in few steps: Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024.
// Its first layer whitens windows of 2x2 pixels and stays as it began; convolutions begin by handing on their input.
#include <fmt/format.h>

#include "chain.hpp"
#include "families.hpp"

namespace dtrain::nn {
namespace {

// The learned scale of a batch norm followed by a convolution says nothing new; running statistics move fast because
// there are few steps.
constexpr BatchNorm kNorm{.epsilon = 1e-12f, .momentum = 0.6f, .fix_gamma = true};
constexpr Activation kGelu{ActivationKind::gelu};

void add_whitening(Chain& net, const Shape& image) {
  Convolution whiten = square_convolution(2 * image.c * 2 * 2, 2);
  whiten.bias = true;
  whiten.frozen = true;
  whiten.initial = InitialWeight::whitening;
  net.then("whiten", whiten).then("gelu0", kGelu);
}

void add_group(Chain& net, int group, int channels) {
  Convolution convolution = square_convolution(channels, 3, 1, 1);
  convolution.initial = InitialWeight::dirac;
  const auto name = [&](const char* part) { return fmt::format("group{}_{}", group, part); };
  net.then(name("conv1"), convolution).then(name("pool"), max_pooling(2, 2));
  net.then(name("bn1"), kNorm).then(name("gelu1"), kGelu);
  net.then(name("conv2"), convolution);
  net.then(name("bn2"), kNorm).then(name("gelu2"), kGelu);
}

}  // namespace

Graph build_speednet(const NetworkOptions& options) {
  const int width = options.width == 0 ? 64 : options.width;
  Chain net(options.name, options.image);
  add_whitening(net, options.image);
  add_group(net, 1, width);
  add_group(net, 2, 4 * width);
  add_group(net, 3, 4 * width);
  net.then("pool", Pooling{.kind = PoolingKind::max, .global = true}).then("flatten", Flatten{});
  net.then("fc", Dense{.out = options.classes, .bias = false}).then("scale", Scale{1.0f / 9});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
