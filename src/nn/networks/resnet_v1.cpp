// The first residual network: He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", 2015. As in MXNet's
// script the stem for small images has no ReLU after its batch norm.
#include <fmt/format.h>

#include "chain.hpp"
#include "families.hpp"
#include "residual_plan.hpp"

namespace dtrain::nn {
namespace {

void add_stem(Chain& net, const ResidualPlan& plan) {
  if (plan.small_image) {
    net.then("conv0", square_convolution(plan.stem_channels, 3, 1, 1)).then("bn0", BatchNorm{});
    return;
  }
  net.then("conv0", square_convolution(plan.stem_channels, 7, 2, 3));
  net.then("bn0", BatchNorm{}).then("relu0", kRelu).then("pooling0", max_pooling(3, 2, 1));
}

void add_unit(Chain& net, const ResidualUnit& unit, bool bottleneck) {
  const auto convolve = [&](int k, const Convolution& convolution) {
    net.then(fmt::format("{}_conv{}", unit.name, k), convolution);
    net.then(fmt::format("{}_bn{}", unit.name, k), BatchNorm{});
  };
  const auto activate = [&](int k) { net.then(fmt::format("{}_relu{}", unit.name, k), kRelu); };
  const int input = net.last();
  if (bottleneck) {
    convolve(1, square_convolution(unit.channels / 4, 1, unit.stride));
    activate(1);
    convolve(2, square_convolution(unit.channels / 4, 3, 1, 1));
    activate(2);
    convolve(3, square_convolution(unit.channels, 1));
  } else {
    convolve(1, square_convolution(unit.channels, 3, unit.stride, 1));
    activate(1);
    convolve(2, square_convolution(unit.channels, 3, 1, 1));
  }
  int shortcut = input;
  if (unit.projects) {
    const int branch = net.last();
    net.go_back_to(input);
    net.then(unit.name + "_conv1sc", square_convolution(unit.channels, 1, unit.stride));
    shortcut = net.then(unit.name + "_sc", BatchNorm{}).last();
    net.go_back_to(branch);
  }
  net.plus(unit.sum_name, shortcut);
  activate(3);
}

}  // namespace

Graph build_resnet_v1(const NetworkOptions& options) {
  const ResidualPlan plan = plan_residual_network(options);
  Chain net(fmt::format("{}-{}", options.name, plan.depth), options.image);
  add_stem(net, plan);
  for (const ResidualUnit& unit : plan.units) add_unit(net, unit, plan.bottleneck);
  net.then("pool1", global_average()).then("flatten0", Flatten{}).then("fc1", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
