#include "thin_network.hpp"

#include <algorithm>

namespace dtrain::testing {
namespace {

// What the last node and the layers of regions read has the channels that they ask for.
bool is_asked_for(const nn::Graph& graph, int node) {
  return std::ranges::any_of(graph.nodes, [&](const nn::Node& reader) {
    const bool asks = std::holds_alternative<nn::Proposals>(reader.layer) ||
                      std::holds_alternative<nn::FoundRegions>(reader.layer) || &reader == &graph.nodes.back();
    return asks && std::ranges::count(reader.inputs, node) > 0;
  });
}

}  // namespace

nn::Graph thin_detector(const nn::NetworkOptions& options, int by) {
  const nn::Graph whole = nn::build_network(options);
  nn::GraphBuilder builder(whole.name, whole.input(), whole.nodes.front().name);
  for (int index = 1; index + 1 < static_cast<int>(whole.nodes.size()); ++index) {
    nn::Layer layer = whole.nodes[static_cast<std::size_t>(index)].layer;
    std::visit(
        [&](auto& each) {
          if constexpr (requires { each.out; }) {
            if (!is_asked_for(whole, index)) each.out = std::max(1, each.out / by);
          }
        },
        layer);
    builder.add(whole.nodes[static_cast<std::size_t>(index)].name, layer,
                whole.nodes[static_cast<std::size_t>(index)].inputs);
  }
  const nn::Node& last = whole.nodes.back();
  const auto* const regions = std::get_if<nn::RegionLoss>(&last.layer);
  nn::Graph graph = regions ? builder.finish(last.inputs, *regions, last.name)
                            : builder.finish(last.inputs, std::get<nn::DetectionLoss>(last.layer), last.name);
  for (nn::Node& node : graph.nodes) node.learns = !std::holds_alternative<nn::BatchNorm>(node.layer);
  return graph;
}

}  // namespace dtrain::testing
