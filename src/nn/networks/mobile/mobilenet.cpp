// Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications", 2017. The last
// pooling is global, so that images of any size fit; at MXNet's 224 pixels it is the same 7x7 window.
#include <fmt/format.h>

#include "../chain.hpp"
#include "../families.hpp"

namespace dtrain::nn {
namespace {

constexpr BatchNorm kBatchNorm{.epsilon = 1e-3f, .fix_gamma = true};  // MXNet's operator defaults

// A depthwise 3x3 and a pointwise convolution.
struct Separable {
  int stride;
  int channels;
};
constexpr Separable kLayers[] = {{1, 64},  {2, 128}, {1, 128}, {2, 256}, {1, 256},  {2, 512}, {1, 512},
                                 {1, 512}, {1, 512}, {1, 512}, {1, 512}, {2, 1024}, {1, 1024}};

void convolve(Chain& net, const std::string& name, const Convolution& convolution) {
  net.then(name + "_conv2d", convolution).then(name + "_batchnorm", kBatchNorm).then(name + "_relu", kRelu);
}

}  // namespace

Graph build_mobilenet(const NetworkOptions& options) {
  int channels = 32;
  int number = 1;
  Chain net(options.name, options.image);
  convolve(net, "conv_1", square_convolution(channels, 3, 2, 1));
  for (const Separable& layer : kLayers) {
    Convolution depthwise = square_convolution(channels, 3, layer.stride, 1);
    depthwise.groups = channels;
    channels = layer.channels;
    ++number;
    convolve(net, fmt::format("conv_{}_dw", number), depthwise);
    convolve(net, fmt::format("conv_{}", number), square_convolution(channels, 1));
  }
  net.then("global_pool", global_average()).then("flatten", Flatten{}).then("fc", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
