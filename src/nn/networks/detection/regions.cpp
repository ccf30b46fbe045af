// torchvision's Faster R-CNN and Mask R-CNN (Ren et al. 2015, He et al. 2017): one head proposes regions on the levels
// of stride 4 to 64, others look into each of them.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/value_range.hpp>

#include "../families.hpp"
#include "feature_pyramid.hpp"

namespace dtrain::nn {
namespace {

constexpr int kUsedLevels = 4;  // in which regions are looked up
constexpr int kMaskPoints = 14, kMostDetections = 100;

Convolution of_each_region(int out, InitialWeight initial) {
  Convolution dense = square_convolution(out, 1);
  dense.bias = true;
  dense.is_dense = true;
  dense.initial = initial;
  return dense;
}

Convolution biased(int out, int kernel, InitialWeight initial) {
  Convolution convolution = square_convolution(out, kernel, 1, kernel / 2);
  convolution.bias = true;
  convolution.initial = initial;
  return convolution;
}

struct PyramidValue {
  int node = 0;
  Levels levels;
};

PyramidValue add_pyramid(Chain& net, const Backbone& backbone) {
  std::vector<int> levels = add_feature_pyramid(net, backbone, 1);
  net.go_back_to(levels.back());
  levels.push_back(net.then("backbone.fpn.extra_blocks.pool", max_pooling(1, 2)).last());
  const Shape& first = net.shape(levels.front());
  const Levels of{static_cast<int>(levels.size()), first.h, first.w};
  return {net.join("levels", Pyramid{}, std::move(levels)).last(), of};
}

struct Heads {
  int logits = 0, codes = 0;
};

Heads add_proposal_heads(Chain& net, const PyramidValue& pyramid) {
  net.go_back_to(pyramid.node);
  const int shared = net.then("rpn.head.conv.0.0", biased(kPyramidChannels, 3, InitialWeight::small))
                         .then("rpn.head.conv.0.1", kRelu)
                         .last();
  const int logits = net.then("rpn.head.cls_logits", biased(Proposals::kAnchors, 1, InitialWeight::small)).last();
  net.go_back_to(shared);
  return {logits, net.then("rpn.head.bbox_pred", biased(4 * Proposals::kAnchors, 1, InitialWeight::small)).last()};
}

Heads add_region_heads(Chain& net, const RegionAlign& align, int pyramid, int regions, int classes) {
  constexpr int kHidden = 1024;
  net.join("roi_heads.box_roi_pool", align, {pyramid, regions});
  for (const char* const name : {"6", "7"}) {
    net.then(fmt::format("roi_heads.box_head.fc{}", name), of_each_region(kHidden, InitialWeight::uniform));
    net.then(fmt::format("roi_heads.box_head.relu{}", name), kRelu);
  }
  const int shared = net.last();
  const int logits =
      net.then("roi_heads.box_predictor.cls_score", of_each_region(classes, InitialWeight::small)).last();
  net.go_back_to(shared);
  return {logits,
          net.then("roi_heads.box_predictor.bbox_pred", of_each_region(4 * classes, InitialWeight::small)).last()};
}

int add_mask_head(Chain& net, RegionAlign align, int pyramid, int found, int classes) {
  constexpr int kConvolutions = 4;
  align.size = kMaskPoints;
  align.apart = true;
  net.join("roi_heads.mask_roi_pool", align, {pyramid, found});
  for (int k = 0; k < kConvolutions; ++k) {
    const std::string part = fmt::format("roi_heads.mask_head.{}", k);
    net.then(part + ".0", biased(kPyramidChannels, 3, InitialWeight::he)).then(part + ".1", kRelu);
    if (k + 1 < kConvolutions) net.then(part + ".regions", KeepRegions{kMaskPoints});
  }
  net.then("roi_heads.mask_predictor.conv5_mask", TransposedConvolution{kPyramidChannels});
  net.then("roi_heads.mask_predictor.relu", kRelu);
  return net.then("roi_heads.mask_predictor.mask_fcn_logits", biased(classes, 1, InitialWeight::small)).last();
}

Graph build(const NetworkOptions& options, bool has_masks) {
  constexpr int kUsualRegions = 512, kFewestRegions = 16;
  require_image(options, "regions have 32 and more");
  const int regions = options.proposals == 0 ? kUsualRegions : options.proposals;
  if (regions < kFewestRegions) {
    throw SettingError("proposals", fmt::format("{} regions of a picture are too few to learn from", regions),
                       fmt::format("give at least {}; usual are {} to {}", kFewestRegions, 64, kUsualRegions));
  }
  const Backbone backbone = find_backbone(options.backbone);
  Chain net(fmt::format("{}-{}", options.name, backbone.name), options.image);
  const PyramidValue pyramid = add_pyramid(net, backbone);
  const Heads anchors = add_proposal_heads(net, pyramid);
  const int proposed = net.join("rpn.proposals",
                                Proposals{.regions = regions,
                                          .levels = pyramid.levels,
                                          .image_height = options.image.h,
                                          .image_width = options.image.w,
                                          .anchor_size = anchor_size_of(options)},
                                {anchors.logits, anchors.codes})
                           .last();
  const RegionAlign align{
      .levels = pyramid.levels, .used = kUsedLevels, .image_height = options.image.h, .image_width = options.image.w};
  const Heads heads = add_region_heads(net, align, pyramid.node, proposed, options.classes + 1);
  const Detections found{.classes = options.classes,
                         .image_height = options.image.h,
                         .image_width = options.image.w,
                         .detections = std::min(regions / 4, kMostDetections),
                         .mask = has_masks ? 2 * kMaskPoints : 0};
  const int objects = net.join("roi_heads.found", FoundRegions{found}, {proposed, heads.logits, heads.codes}).last();
  std::vector<int> inputs{anchors.logits, anchors.codes, proposed, heads.logits, heads.codes, objects};
  if (has_masks) inputs.push_back(add_mask_head(net, align, pyramid.node, objects, options.classes + 1));
  return net.finish(std::move(inputs),
                    RegionLoss{.found = found, .levels = pyramid.levels, .anchor_size = anchor_size_of(options)});
}

}  // namespace

Graph build_faster_rcnn(const NetworkOptions& options) { return build(options, false); }
Graph build_mask_rcnn(const NetworkOptions& options) { return build(options, true); }

}  // namespace dtrain::nn
