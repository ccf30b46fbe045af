// One function per family of networks; networks.cpp is the table of them and checks the options they share.
#pragma once

#include <array>

#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {

Graph build_resnet(const NetworkOptions& options);
Graph build_resnet_v1(const NetworkOptions& options);
Graph build_lenet(const NetworkOptions& options);
Graph build_mlp(const NetworkOptions& options);
Graph build_vgg(const NetworkOptions& options);
Graph build_mobilenet(const NetworkOptions& options);
Graph build_speednet(const NetworkOptions& options);

// Those of torchvision, with its names of tensors.

struct TorchResnet {
  int depth = 0;         // 0: as the options say
  int groups = 1;        // of the 3x3 convolutions of bottlenecks
  int group_width = 64;  // channels of a group in the first stage, where the stem has 64
};
Graph build_torch_resnet(const NetworkOptions& options, const TorchResnet& variant);
struct TorchVgg {
  std::array<int, 5> convolutions;  // of each block
  bool batch_norm = false;
};
Graph build_torch_vgg(const NetworkOptions& options, const TorchVgg& variant);
Graph build_alexnet(const NetworkOptions& options);
Graph build_mobilenet_v2(const NetworkOptions& options);

}  // namespace dtrain::nn
