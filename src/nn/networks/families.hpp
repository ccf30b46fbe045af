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
  bool squeezes = false;
};
Graph build_torch_resnet(const NetworkOptions& options, const TorchResnet& variant);
class Chain;
// Its stem and its four stages, whose names begin with `prefix`; the node that ends each stage.
std::vector<int> add_torch_resnet(Chain& net, const std::string& prefix, int depth);
struct TorchVgg {
  std::array<int, 5> convolutions;  // of each block
  bool batch_norm = false;
};
Graph build_torch_vgg(const NetworkOptions& options, const TorchVgg& variant);
Graph build_alexnet(const NetworkOptions& options);
Graph build_squeezenet_1_0(const NetworkOptions& options);
Graph build_squeezenet_1_1(const NetworkOptions& options);
struct Densenet {
  std::array<int, 4> layers;  // of each block
  int growth = 32;            // channels that a layer adds
  int first = 64;             // channels of the stem
};
Graph build_densenet(const NetworkOptions& options, const Densenet& variant);
Graph build_googlenet(const NetworkOptions& options);
Graph build_inception_v3(const NetworkOptions& options);
Graph build_mobilenet_v2(const NetworkOptions& options);
Graph build_mobilenet_v3_small(const NetworkOptions& options);
Graph build_mobilenet_v3_large(const NetworkOptions& options);
struct Efficientnet {
  int width_tenths = 10, depth_tenths = 10;  // times those of B0
  int dropout_tenths = 2;
};
Graph build_efficientnet(const NetworkOptions& options, const Efficientnet& variant);
struct Regnet {
  std::array<int, 4> blocks, channels;  // of each stage
  int group_width;
  bool squeezes;
};
Graph build_regnet(const NetworkOptions& options, const Regnet& variant);
struct Convnext {
  std::array<int, 4> blocks, channels;  // of each stage
};
Graph build_convnext(const NetworkOptions& options, const Convnext& variant);
struct Vit {
  int channels = 768, heads = 12;
};
Graph build_vit(const NetworkOptions& options, const Vit& variant);

Graph build_retinanet(const NetworkOptions& options);
Graph build_faster_rcnn(const NetworkOptions& options);
Graph build_mask_rcnn(const NetworkOptions& options);

}  // namespace dtrain::nn
