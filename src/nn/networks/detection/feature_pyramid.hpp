// A residual network with a feature pyramid on it (Lin et al., "Feature Pyramid Networks for Object Detection", 2017),
// as torchvision has it and with its names.
#pragma once

#include <string>
#include <vector>

#include "../chain.hpp"

namespace dtrain::nn {

constexpr int kPyramidChannels = 256;

struct Backbone {
  std::string name;  // resnet-18
  int depth = 0;
};
// Throws UsageError for a name that is none of backbone_names(); "" is resnet-50.
Backbone find_backbone(const std::string& name);

// A 3x3 or 1x1 convolution of the pyramid, which keeps the size and has a bias.
Convolution pyramid_convolution(int kernel, int stride = 1);

// The levels of the stages from `first_stage` (1 to 4) on, the largest first.
std::vector<int> add_feature_pyramid(Chain& net, const Backbone& backbone, int first_stage);

}  // namespace dtrain::nn
