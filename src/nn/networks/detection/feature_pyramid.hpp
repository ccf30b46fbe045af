// A residual network with a feature pyramid on it (Lin et al., "Feature Pyramid Networks for Object Detection", 2017),
// as torchvision has it and with its names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/nn/networks.hpp>

#include "../chain.hpp"

namespace dtrain::nn {

constexpr int kPyramidChannels = 256;

struct Backbone {
  std::string name;  // resnet-18
  int depth = 0;
};
// Throws UsageError for a name that is none of backbone_names(); "" is resnet-50.
Backbone find_backbone(const std::string& name);

// The side, rounded up to a multiple of kDetectorStride.
int whole_strides(int side);
// Throws SettingError for images that are too small, of a network "whose <why>", and for sides that kDetectorStride
// does not divide.
void require_image(const NetworkOptions& options, std::string_view why);

// Throws SettingError for a size that is out of range.
int anchor_size_of(const NetworkOptions& options);

// A 3x3 or 1x1 convolution of the pyramid, which keeps the size and has a bias.
Convolution pyramid_convolution(int kernel, int stride = 1);

// The levels of the stages from `first_stage` (1 to 4) on, the largest first.
std::vector<int> add_feature_pyramid(Chain& net, const Backbone& backbone, int first_stage);

}  // namespace dtrain::nn
