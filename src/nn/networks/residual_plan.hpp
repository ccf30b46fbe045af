// What the residual networks share: which units a depth means.
#pragma once

#include <string>
#include <vector>

#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {

struct ResidualUnit {
  std::string name;      // MXNet's: stage1_unit1
  std::string sum_name;  // MXNet's for the n-th sum: _plus0
  int channels = 0;      // of the output; a bottleneck's inner convolutions have a quarter
  int stride = 1;
  bool projects = false;  // first of its stage: the shortcut is a convolution
};

struct ResidualPlan {
  int depth = 0;
  bool small_image = false;  // 3x3 stem without pooling
  bool bottleneck = false;
  int stem_channels = 0;
  std::vector<ResidualUnit> units;
};

// Throws UsageError with the depths that exist for this image height.
ResidualPlan plan_residual_network(const NetworkOptions& options);
// ImageNet's stages for images of any height. Throws UsageError with the depths that exist.
ResidualPlan plan_imagenet_network(const NetworkOptions& options);

}  // namespace dtrain::nn
