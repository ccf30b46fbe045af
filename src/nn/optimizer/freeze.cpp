#include <dtrain/nn/freeze.hpp>

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::nn {
namespace {

constexpr const char* kBackbone = "backbone";
constexpr const char* kHint = "`dtrain inspect` of a checkpoint lists its layers";

std::int64_t weighted_layers(const Graph& graph) { return std::ranges::count_if(graph.nodes, has_weight); }

void freeze_first(Graph& graph, std::int64_t layers) {
  std::int64_t seen = 0;
  for (Node& node : graph.nodes) {
    if (has_weight(node) && ++seen > layers) return;
    if (!node.parameters.empty()) node.learns = false;
  }
}

void freeze_count(Graph& graph, std::int64_t layers) {
  if (layers == 0) return;  // not even the norms before the first layer with weights
  const std::int64_t all = weighted_layers(graph);
  if (layers > all) {
    throw UsageError(fmt::format("setting 'freeze' {}: {} has {} layers with weights", layers, graph.name, all), kHint);
  }
  freeze_first(graph, layers);
}

void freeze_named(Graph& graph, const std::string& pattern) {
  std::vector<std::string> names;
  bool found = false;
  for (Node& node : graph.nodes) {
    if (node.parameters.empty()) continue;
    names.push_back(node.name);
    if (::fnmatch(pattern.c_str(), node.name.c_str(), 0) != 0) continue;
    node.learns = false;
    found = true;
  }
  if (found) return;
  const auto near = nearest_name(pattern, names);
  throw UsageError(fmt::format("setting 'freeze': no layer of {} with parameters is named \"{}\"", graph.name, pattern),
                   near ? fmt::format("the nearest name is {}; {}", *near, kHint) : kHint);
}

void freeze_backbone(Graph& graph) {
  if (detection_of(graph)) return freeze_named(graph, fmt::format("{}*", kBackbonePrefix));
  freeze_first(graph, weighted_layers(graph) - 1);
}

void freeze_part(Graph& graph, const std::string& part) {
  if (part == kBackbone) return freeze_backbone(graph);
  if (const auto layers = parse_integer(part); layers && *layers >= 0) return freeze_count(graph, *layers);
  freeze_named(graph, part);
}

}  // namespace

std::int64_t frozen_tensors(const Graph& graph) {
  std::int64_t frozen = 0;
  for (const Node& node : graph.nodes) {
    if (!node.learns) frozen += static_cast<std::int64_t>(node.parameters.size());
  }
  return frozen;
}

std::int64_t freeze(Graph& graph, const std::string& which) {
  for (Node& node : graph.nodes) node.learns = true;
  for (const std::string& part : split(which, ',')) freeze_part(graph, std::string(trim(part)));
  const std::int64_t frozen = frozen_tensors(graph);
  if (frozen == static_cast<std::int64_t>(graph.parameters.size())) {
    throw UsageError(fmt::format("setting 'freeze' {}: nothing of {} is left to learn", which, graph.name), kHint);
  }
  return frozen;
}

}  // namespace dtrain::nn
