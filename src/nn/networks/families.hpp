// One function per family of networks; networks.cpp is the table of them and checks the options they share.
#pragma once

#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {

Graph build_resnet(const NetworkOptions& options);
Graph build_resnet_v1(const NetworkOptions& options);
Graph build_torch_resnet(const NetworkOptions& options);
Graph build_lenet(const NetworkOptions& options);
Graph build_mlp(const NetworkOptions& options);
Graph build_vgg(const NetworkOptions& options);
Graph build_mobilenet(const NetworkOptions& options);
Graph build_speednet(const NetworkOptions& options);

}  // namespace dtrain::nn
