// Networks by name, with the parameter names, shapes and defaults of MXNet's image-classification symbols.
#pragma once

#include <string>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

struct NetworkOptions {
  std::string name = "resnet";  // resnet (v2) | resnet-v1 | lenet | mlp | vgg | mobilenet
  int num_layers = 0;           // 0: the network's default depth
  Shape image{3, 28, 28};
  int classes = 10;
  int width = 0;  // resnets for CIFAR: channels of the first stage (0: 16); mobilenet and others: must be 0
  float label_smoothing = 0.0f;
  bool batch_norm = false;  // vgg only
};

// Throws UsageError: an unknown name with the nearest known one, a depth with the list of those that exist.
// Image height <= 32 selects the CIFAR resnets: (n-2)/6 basic blocks a stage below 164, (n-2)/9 bottlenecks from there
// on (He et al. 2016; the rule of MXNet's symbols/resnet.py).
Graph build_network(const NetworkOptions& options);

std::vector<std::string> network_names();

}  // namespace dtrain::nn
