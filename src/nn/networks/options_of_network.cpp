#include <dtrain/nn/networks.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "detection/feature_pyramid.hpp"

namespace dtrain::nn {
namespace {

bool has_same_tensors(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.parameters, b.parameters, [](const TensorView& one, const TensorView& other) {
    return one.name == other.name && one.shape == other.shape;
  });
}

// "resnet-110" is resnet of 110 layers, "resnet18" has one depth, and "retinanet-resnet-18" is on that backbone.
std::optional<NetworkOptions> named(const std::string& name, const Graph& graph) {
  NetworkOptions options{.name = name, .image = graph.input(), .classes = graph.classes()};
  if (graph.name == name) return options;
  if (!graph.name.starts_with(name + "-")) return std::nullopt;
  const std::string rest = graph.name.substr(name.size() + 1);
  if (detection_of(graph)) {
    options.backbone = rest;
    options.image.h = whole_strides(options.image.h);
    options.image.w = whole_strides(options.image.w);
    if (anchor_size(graph) != kUsualAnchorSize) options.anchor_size = anchor_size(graph);
    for (const Node& node : graph.nodes) {
      if (const auto* proposals = std::get_if<Proposals>(&node.layer)) options.proposals = proposals->regions;
    }
    return options;
  }
  const auto layers = parse_integer(rest);
  if (!layers || *layers <= 0 || *layers > INT32_MAX) return std::nullopt;
  options.num_layers = static_cast<int>(*layers);
  return options;
}

bool builds(const NetworkOptions& options, const Graph& graph) try {
  return has_same_tensors(build_network(options), graph);
} catch (const UsageError&) {
  return false;
}

int channels_of_first_convolution(const Graph& graph) {
  const auto first = std::ranges::find_if(
      graph.nodes, [](const Node& node) { return std::holds_alternative<Convolution>(node.layer); });
  return first == graph.nodes.end() ? 0 : first->output.c;
}

}  // namespace

std::optional<NetworkOptions> options_of_network(const Graph& graph) {
  for (const std::string& name : network_names()) {
    std::optional<NetworkOptions> options = named(name, graph);
    if (!options) continue;
    for (const int width : {0, channels_of_first_convolution(graph)}) {
      for (const bool batch_norm : {false, true}) {
        options->width = width;
        options->batch_norm = batch_norm;
        if (builds(*options, graph)) return options;
      }
    }
  }
  return std::nullopt;
}

}  // namespace dtrain::nn
