#include <dtrain/nn/synchronized_norms.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::nn {

void synchronize_norms(Graph& graph) {
  bool found = false;
  for (Node& node : graph.nodes) {
    auto* const norm = std::get_if<BatchNorm>(&node.layer);
    if (!norm) continue;
    norm->synchronized = true;
    found = true;
  }
  if (!found) throw UsageError(fmt::format("setting 'sync-bn': {} has no batch norm", graph.name), "leave it out");
}

bool has_synchronized_norms(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    const auto* const norm = std::get_if<BatchNorm>(&node.layer);
    return norm && norm->synchronized && node.learns;
  });
}

}  // namespace dtrain::nn
