#include "feature_pyramid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/value_range.hpp>

#include "../families.hpp"

namespace dtrain::nn {
namespace {

constexpr int kDepths[] = {18, 34, 50, 101};

std::string name_of(int depth) { return fmt::format("resnet-{}", depth); }

}  // namespace

std::vector<std::string> backbone_names() {
  std::vector<std::string> names;
  for (const int depth : kDepths) names.push_back(name_of(depth));
  return names;
}

Backbone find_backbone(const std::string& name) {
  const std::string wanted = name.empty() ? name_of(50) : name;
  for (const int depth : kDepths) {
    if (wanted == name_of(depth)) return {wanted, depth};
  }
  throw SettingError("backbone", fmt::format("{} is no backbone of a detector", name),
                     fmt::format("choose one of {}", join(backbone_names(), ", ")));
}

int whole_strides(int side) { return (side + kDetectorStride - 1) / kDetectorStride * kDetectorStride; }

void require_image(const NetworkOptions& options, std::string_view why) {
  constexpr int kSmallest = 64;
  const Shape& image = options.image;
  if (image.h < kSmallest || image.w < kSmallest) {
    throw SettingError(
        "image-shape",
        fmt::format("images of {} x {} pixels are too small for {}, whose {}", image.h, image.w, options.name, why),
        fmt::format("give at least 3,{0},{0}; usual are 3,512,512 to 3,1024,1024", kSmallest));
  }
  if (image.h % kDetectorStride == 0 && image.w % kDetectorStride == 0) return;
  const auto smaller = [](int side) { return side - side % kDetectorStride; };
  throw SettingError(
      "image-shape",
      fmt::format("height and width of images of {} x {} pixels are not both multiples of {}, the stride of detectors",
                  image.h, image.w, kDetectorStride),
      fmt::format("give {0},{1},{2} or {0},{3},{4}; pictures are padded to it", image.c, whole_strides(image.h),
                  whole_strides(image.w), smaller(image.h), smaller(image.w)));
}

int anchor_size_of(const NetworkOptions& options) {
  const int size = options.anchor_size;
  if (size == 0) return kUsualAnchorSize;
  if (size >= kSmallestAnchor && size <= kLargestAnchor) return size;
  throw SettingError("anchor-size", fmt::format("anchors of {} pixels are out of range", size),
                     fmt::format("give {} to {}; usual is {}", kSmallestAnchor, kLargestAnchor, kUsualAnchorSize));
}

Convolution pyramid_convolution(int kernel, int stride) {
  Convolution convolution = square_convolution(kPyramidChannels, kernel, stride, kernel / 2);
  convolution.bias = true;
  convolution.initial = InitialWeight::uniform;
  return convolution;
}

std::vector<int> add_feature_pyramid(Chain& net, const Backbone& backbone, int first_stage) {
  const std::vector<int> ends = add_torch_resnet(net, std::string(kBackbonePrefix), backbone.depth);
  const std::span<const int> stages = std::span(ends).subspan(static_cast<std::size_t>(first_stage - 1));
  std::vector<int> levels(stages.size());
  int above = -1;
  for (std::size_t k = stages.size(); k-- > 0;) {
    net.go_back_to(stages[k]);
    net.then(fmt::format("backbone.fpn.inner_blocks.{}.0", k), pyramid_convolution(1));
    if (above >= 0) {
      const int lateral = net.last();
      net.join(fmt::format("backbone.fpn.upsample.{}", k), Upsample{}, {above, lateral});
      net.plus(fmt::format("backbone.fpn.add.{}", k), lateral);
    }
    above = net.last();
    levels[k] = net.then(fmt::format("backbone.fpn.layer_blocks.{}.0", k), pyramid_convolution(3)).last();
  }
  return levels;
}

}  // namespace dtrain::nn
