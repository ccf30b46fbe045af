#include "tensor_names.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include <dtrain/base/error.hpp>

#include "layer_shapes.hpp"

namespace dtrain::nn {

std::vector<const TensorView*> tensors_of(const Graph& graph, const Node& node) {
  std::vector<const TensorView*> views;
  for (const int index : node.parameters) views.push_back(&graph.parameters[static_cast<std::size_t>(index)]);
  for (const int index : node.statistics) views.push_back(&graph.statistics[static_cast<std::size_t>(index)]);
  return views;
}

bool has_own_tensor_names(const Graph& graph, const Node& node) {
  const std::vector<const TensorView*> views = tensors_of(graph, node);
  if (views.empty()) return false;
  const Shape& input = graph.nodes[static_cast<std::size_t>(node.inputs[0])].output;
  const std::vector<TensorPlan> plans = layer_tensors(node.layer, input);
  for (std::size_t i = 0; i < views.size(); ++i) {
    if (views[i]->name != node.name + plans[i].suffix) return true;
  }
  return false;
}

void rename_tensors(Graph& graph, int index, const std::vector<std::string>& names) {
  const Node& node = graph.nodes[static_cast<std::size_t>(index)];
  if (names.size() != node.parameters.size() + node.statistics.size()) {
    throw DataError(fmt::format("{}: {} names for its {} tensors", node.name, names.size(),
                                node.parameters.size() + node.statistics.size()));
  }
  auto name = names.begin();
  for (const int parameter : node.parameters) graph.parameters[static_cast<std::size_t>(parameter)].name = *name++;
  for (const int statistic : node.statistics) graph.statistics[static_cast<std::size_t>(statistic)].name = *name++;
}

void require_distinct_tensor_names(const Graph& graph) {
  std::unordered_set<std::string> names;
  for (const auto* views : {&graph.parameters, &graph.statistics}) {
    for (const TensorView& view : *views) {
      if (!names.insert(view.name).second) {
        throw DataError(fmt::format("two layers use the tensor {}: sharing is not supported", view.name));
      }
    }
  }
}

}  // namespace dtrain::nn
