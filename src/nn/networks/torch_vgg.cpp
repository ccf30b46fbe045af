// torchvision's networks that end in dense layers on a fixed number of pixels: Krizhevsky, "One weird trick for
// parallelizing convolutional neural networks", 2014; Simonyan and Zisserman, "Very deep convolutional networks for
// large-scale image recognition", 2014.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

constexpr int kFirstChannels = 64, kMostChannels = 512;

// The layers of torchvision's Sequential `features`, numbered from 0.
class Features {
 public:
  explicit Features(Chain& net) : net_(net) {}
  Features& then(const Layer& layer) {
    net_.then(fmt::format("features.{}", number_++), layer);
    return *this;
  }

 private:
  Chain& net_;
  int number_ = 0;
};

// The mean of equal windows, as many as the dense layers want: nothing at the image size of torchvision's weights.
void pool_to(Chain& net, const NetworkOptions& options, int pixels) {
  const Shape& in = net.shape();
  if (in.h % pixels != 0 || in.w % pixels != 0) {
    throw UsageError(fmt::format("{}: {}x{} pixels are left of images of {}x{}, its dense layers take multiples of {}",
                                 options.name, in.h, in.w, options.image.h, options.image.w, pixels),
                     "use images of 224x224 pixels with setting 'image-shape', or another network");
  }
  const int h = in.h / pixels, w = in.w / pixels;
  if (h == 1 && w == 1) return;
  net.then("avgpool",
           Pooling{.kind = PoolingKind::average, .kernel_h = h, .kernel_w = w, .stride_h = h, .stride_w = w});
}

}  // namespace

Graph build_alexnet(const NetworkOptions& options) {
  Chain net(options.name, options.image);
  Features features(net);
  features.then(biased(square_convolution(64, 11, 4, 2))).then(kRelu).then(max_pooling(3, 2));
  features.then(biased(square_convolution(192, 5, 1, 2))).then(kRelu).then(max_pooling(3, 2));
  for (const int channels : {384, 256, 256}) {
    features.then(biased(square_convolution(channels, 3, 1, 1))).then(kRelu);
  }
  features.then(max_pooling(3, 2));
  pool_to(net, options, 6);
  net.then("flatten", Flatten{}).then("classifier.0", Dropout{0.5f});
  net.then("classifier.1", Dense{4096}).then("classifier.2", kRelu).then("classifier.3", Dropout{0.5f});
  net.then("classifier.4", Dense{4096}).then("classifier.5", kRelu).then("classifier.6", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

Graph build_torch_vgg(const NetworkOptions& options, const TorchVgg& variant) {
  Chain net(options.name, options.image);
  Features features(net);
  int channels = kFirstChannels;
  for (const int convolutions : variant.convolutions) {
    for (int k = 0; k < convolutions; ++k) {
      features.then(biased(square_convolution(channels, 3, 1, 1)));
      if (variant.batch_norm) features.then(kTorchBatchNorm);
      features.then(kRelu);
    }
    features.then(max_pooling(2, 2));
    channels = std::min(2 * channels, kMostChannels);
  }
  pool_to(net, options, 7);
  net.then("flatten", Flatten{});
  net.then("classifier.0", Dense{4096}).then("classifier.1", kRelu).then("classifier.2", Dropout{0.5f});
  net.then("classifier.3", Dense{4096}).then("classifier.4", kRelu).then("classifier.5", Dropout{0.5f});
  net.then("classifier.6", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
