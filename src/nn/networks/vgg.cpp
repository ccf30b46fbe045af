// Simonyan and Zisserman, "Very deep convolutional networks for large-scale image recognition", 2014.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include <dtrain/base/error.hpp>

#include "chain.hpp"
#include "families.hpp"

namespace dtrain::nn {
namespace {

struct VggDepth {
  int depth;
  std::array<int, 5> convolutions;  // of each block
};
constexpr VggDepth kDepths[] = {
    {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
constexpr std::array<int, 5> kChannels = {64, 128, 256, 512, 512};
constexpr BatchNorm kBatchNorm{.epsilon = 1e-3f, .fix_gamma = true};  // MXNet's operator defaults

const VggDepth& find_depth(int depth) {
  const auto found = std::ranges::find(kDepths, depth, &VggDepth::depth);
  if (found != std::end(kDepths)) return *found;
  std::vector<int> depths;
  for (const VggDepth& known : kDepths) depths.push_back(known.depth);
  throw UsageError(fmt::format("vgg has no depth {}: it has {}", depth, fmt::join(depths, ", ")),
                   "choose one of them with setting 'num-layers'");
}

void add_block(Chain& net, int block, int convolutions, int channels, bool batch_norm) {
  for (int k = 1; k <= convolutions; ++k) {
    Convolution convolution = square_convolution(channels, 3, 1, 1);
    convolution.bias = true;
    net.then(fmt::format("conv{}_{}", block, k), convolution);
    if (batch_norm) net.then(fmt::format("bn{}_{}", block, k), kBatchNorm);
    net.then(fmt::format("relu{}_{}", block, k), kRelu);
  }
  net.then(fmt::format("pool{}", block), max_pooling(2, 2));
}

}  // namespace

Graph build_vgg(const NetworkOptions& options) {
  const VggDepth& plan = find_depth(options.num_layers == 0 ? 16 : options.num_layers);
  Chain net(fmt::format("{}-{}", options.name, plan.depth), options.image);
  for (std::size_t block = 0; block < plan.convolutions.size(); ++block) {
    add_block(net, static_cast<int>(block) + 1, plan.convolutions[block], kChannels[block], options.batch_norm);
  }
  net.then("flatten", Flatten{});
  net.then("fc6", Dense{4096}).then("relu6", kRelu).then("drop6", Dropout{0.5f});
  net.then("fc7", Dense{4096}).then("relu7", kRelu).then("drop7", Dropout{0.5f});
  net.then("fc8", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
