// Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size", 2016, as
// torchvision writes it.
#include <fmt/format.h>

#include <span>

#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

// A 1x1 convolution, and what a 1x1 and a 3x3 convolution make of it. The first of a group follows a pooling.
struct Fire {
  int squeeze, expand;  // channels, those of each of the two
  bool after_pooling = false;
};
constexpr Fire kFires[] = {{16, 64, true}, {16, 64},  {32, 128}, {32, 128, true},
                           {48, 192},      {48, 192}, {64, 256}, {64, 256, true}};
constexpr Fire kLaterFires[] = {{16, 64, true},  {16, 64},  {32, 128, true}, {32, 128},
                                {48, 192, true}, {48, 192}, {64, 256},       {64, 256}};

void add_fire(Chain& net, const std::string& name, const Fire& fire) {
  const auto convolve = [&](const char* part, const Convolution& convolution) {
    net.then(fmt::format("{}.{}", name, part), biased(convolution));
    net.then(fmt::format("{}.{}_activation", name, part), kRelu);
  };
  convolve("squeeze", square_convolution(fire.squeeze, 1));
  Branches branches(net);
  convolve("expand1x1", square_convolution(fire.expand, 1));
  branches.end();
  convolve("expand3x3", square_convolution(fire.expand, 3, 1, 1));
  branches.end();
  branches.join(name + ".concat");
}

Graph build(const NetworkOptions& options, const Convolution& first, std::span<const Fire> fires) {
  Chain net(options.name, options.image);
  int number = 0;
  const auto next = [&] { return fmt::format("features.{}", number++); };
  Pooling pooling = max_pooling(3, 2);
  pooling.full = true;
  net.then(next(), biased(first)).then(next(), kRelu);
  for (const Fire& fire : fires) {
    if (fire.after_pooling) net.then(next(), pooling);
    add_fire(net, next(), fire);
  }
  net.then("classifier.0", Dropout{0.5f}).then("classifier.1", biased(square_convolution(options.classes, 1)));
  net.then("classifier.2", kRelu).then("classifier.3", global_average()).then("flatten", Flatten{});
  return net.finish(options.label_smoothing);
}

}  // namespace

Graph build_squeezenet_1_0(const NetworkOptions& options) {
  return build(options, square_convolution(96, 7, 2), kFires);
}

Graph build_squeezenet_1_1(const NetworkOptions& options) {
  return build(options, square_convolution(64, 3, 2), kLaterFires);
}

}  // namespace dtrain::nn
