#include "unwritten.hpp"

#include "../../node_access.hpp"

namespace dtrain::backend::cpu {
namespace {

// A batch norm that learns writes both gradients, also that of a held gamma: the update passes over it.
bool writes_gradient(const nn::Node& node, std::size_t parameter) {
  return as<nn::BatchNorm>(node) ? node.learns : !nn::is_held(node, parameter);
}

}  // namespace

std::vector<Part> unwritten_parts(const nn::Graph& graph, const Fusion& fusion, const std::vector<bool>& is_reached) {
  std::vector<Part> parts;
  for (std::size_t index = 0; index < graph.nodes.size(); ++index) {
    const nn::Node& node = graph.nodes[index];
    // The gradient that a batch norm reads is that of its group's value.
    const std::size_t value = as<nn::BatchNorm>(node) ? at(fusion.norms[index].output) : index;
    for (std::size_t which = 0; which < node.parameters.size(); ++which) {
      if (is_reached[value] && writes_gradient(node, which)) continue;
      const nn::TensorView& view = graph.parameters[at(node.parameters[which])];
      parts.push_back({view.offset, view.size});
    }
    if (node.learns) continue;
    for (const int statistic : node.statistics) {
      const nn::TensorView& view = graph.statistics[at(statistic)];
      parts.push_back({graph.parameter_count + view.offset, view.size});
    }
  }
  return parts;
}

}  // namespace dtrain::backend::cpu
