// torchvision's RetinaNet (Lin et al. 2017): two heads on the levels of stride 8 to 128.
#include <fmt/format.h>

#include "../families.hpp"
#include "feature_pyramid.hpp"

namespace dtrain::nn {
namespace {

constexpr int kHeadConvolutions = 4;

Convolution head_convolution(int out, InitialWeight initial) {
  Convolution convolution = square_convolution(out, 3, 1, 1);
  convolution.bias = true;
  convolution.initial = initial;
  return convolution;
}

// What lies between the levels must be zero for the convolution that follows.
int add_head(Chain& net, const std::string& name, const std::string& last, int pyramid, const Levels& levels, int out,
             InitialWeight initial) {
  net.go_back_to(pyramid);
  for (int k = 0; k < kHeadConvolutions; ++k) {
    const std::string part = fmt::format("{}.conv.{}", name, k);
    net.then(part + ".0", head_convolution(kPyramidChannels, InitialWeight::small)).then(part + ".1", kRelu);
    net.then(part + ".levels", KeepLevels{levels});
  }
  return net.then(name + "." + last, head_convolution(out, initial)).last();
}

}  // namespace

Graph build_retinanet(const NetworkOptions& options) {
  require_image(options, "smallest objects have 32");
  const Backbone backbone = find_backbone(options.backbone);
  Chain net(fmt::format("{}-{}", options.name, backbone.name), options.image);
  std::vector<int> levels = add_feature_pyramid(net, backbone, 2);
  net.go_back_to(levels.back());
  levels.push_back(net.then("backbone.fpn.extra_blocks.p6", pyramid_convolution(3, 2)).last());
  net.then("backbone.fpn.extra_blocks.p6.relu", kRelu);
  levels.push_back(net.then("backbone.fpn.extra_blocks.p7", pyramid_convolution(3, 2)).last());

  const Shape& first = net.shape(levels.front());
  const Levels of{static_cast<int>(levels.size()), first.h, first.w};
  const int pyramid = net.join("levels", Pyramid{}, levels).last();
  constexpr int kAnchors = DetectionLoss::kAnchors;
  const int classes = add_head(net, "head.classification_head", "cls_logits", pyramid, of, kAnchors * options.classes,
                               InitialWeight::rare);
  const int boxes = add_head(net, "head.regression_head", "bbox_reg", pyramid, of, kAnchors * 4, InitialWeight::small);
  const Detections found{.classes = options.classes, .image_height = options.image.h, .image_width = options.image.w};
  return net.finish({classes, boxes},
                    DetectionLoss{.found = found, .levels = of, .anchor_size = anchor_size_of(options)});
}

}  // namespace dtrain::nn
