// Reads dtrain.graph/1. Attributes may be left out where the layer has a default; a node without "inputs" follows the
// one before it; a pair may be one number; "shape" is only read of the input.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include <dtrain/base/error.hpp>

#include "graph_schema.hpp"
#include "layer_fields.hpp"
#include "node_reader.hpp"
#include "tensor_names.hpp"

namespace dtrain::nn {
namespace {

template <std::size_t... I>
std::array<Layer, sizeof...(I)> every_layer(std::index_sequence<I...>) {
  return {Layer{std::in_place_index<I>}...};
}

// The layer of that kind with default attributes.
Layer layer_of_kind(NodeReader& reader) {
  const auto layers = every_layer(std::make_index_sequence<std::variant_size_v<Layer>>());
  std::array<const char*, layers.size()> kinds;
  std::ranges::transform(layers, kinds.begin(), layer_kind);
  const std::string& kind = reader.text("layer");
  const auto index = index_of(kinds, kind);
  if (!index) reader.refuse(fmt::format("there is no layer \"{}\"", kind), advice(kinds, kind));
  return layers[*index];
}

Shape read_image(NodeReader& reader) {
  if (!std::holds_alternative<Input>(layer_of_kind(reader))) reader.refuse("the first layer must be an input");
  const Json* shape = reader.find("shape");
  if (!shape || !shape->is_array() || shape->as_array().size() != 3) reader.refuse("\"shape\" must be [c, h, w]");
  const auto extent = [&](std::size_t i) { return reader.integer("shape", shape->as_array()[i]); };
  reader.require_all_known();
  return {extent(0), extent(1), extent(2)};
}

class GraphReader {
 public:
  GraphReader(const std::string& name, NodeReader input) : builder_(name, read_image(input), input.name()) {
    indices_[input.name()] = builder_.input();
    last_ = builder_.input();
  }

  void read(NodeReader& reader) {
    Layer layer = layer_of_kind(reader);
    std::vector<int> inputs = read_inputs(reader);
    std::visit([&](auto& kind) { visit_fields(kind, reader); }, layer);
    reader.find("shape");
    bool learns = true;
    reader(kLearns, learns);
    if (!learns) frozen_.push_back(last_ + 1);
    if (const Json* names = reader.find("tensors"))
      tensor_names_.emplace_back(last_ + 1, reader.texts("tensors", *names));
    reader.require_all_known();
    last_ = builder_.add(reader.name(), std::move(layer), std::move(inputs));
    indices_[reader.name()] = last_;
  }

  // The last node is the loss, and only it.
  Graph finish(NodeReader& reader) {
    Layer layer = layer_of_kind(reader);
    auto* const softmax = std::get_if<SoftmaxLoss>(&layer);
    auto* const detection = std::get_if<DetectionLoss>(&layer);
    auto* const regions = std::get_if<RegionLoss>(&layer);
    if (!softmax && !detection && !regions) {
      reader.refuse("the last layer must be a softmax_loss, a detection_loss or a region_loss");
    }
    const std::vector<int> inputs = read_inputs(reader);
    if (softmax && inputs.size() != 1) reader.refuse("softmax_loss takes 1 input");
    std::visit([&](auto& kind) { visit_fields(kind, reader); }, layer);
    reader.find("shape");
    reader.require_all_known();
    Graph graph = softmax     ? builder_.finish(inputs[0], std::move(*softmax), reader.name())
                  : detection ? builder_.finish(inputs, *detection, reader.name())
                              : builder_.finish(inputs, *regions, reader.name());
    for (const auto& [node, names] : tensor_names_) rename_tensors(graph, node, names);
    for (const int node : frozen_) graph.nodes[static_cast<std::size_t>(node)].learns = false;
    require_distinct_tensor_names(graph);
    if (regions) require_anchors_of(*regions, graph, reader);
    return graph;
  }

 private:
  static void require_anchors_of(const RegionLoss& loss, const Graph& graph, const NodeReader& reader) {
    for (const Node& node : graph.nodes) {
      const auto* const proposals = std::get_if<Proposals>(&node.layer);
      if (!proposals || proposals->anchor_size == loss.anchor_size) continue;
      reader.refuse(fmt::format("its anchors begin at {} pixels, and those of {} at {}", loss.anchor_size, node.name,
                                proposals->anchor_size));
    }
  }

  std::vector<int> read_inputs(NodeReader& reader) const {
    const Json* json = reader.find("inputs");
    if (!json) return {last_};
    std::vector<int> inputs;
    for (const std::string& name : reader.texts("inputs", *json)) {
      const auto found = indices_.find(name);
      if (found == indices_.end()) reader.refuse(fmt::format("its input \"{}\" is no earlier layer", name));
      inputs.push_back(found->second);
    }
    return inputs;
  }

  GraphBuilder builder_;
  std::unordered_map<std::string, int> indices_;
  std::vector<std::pair<int, std::vector<std::string>>> tensor_names_;  // of nodes, by index
  std::vector<int> frozen_;                                             // nodes that do not learn
  int last_ = 0;
};

}  // namespace

Graph graph_from_schema(const Json& document) {
  const Json::Array& nodes = document.at("nodes").as_array();
  if (nodes.size() < 3) throw DataError("a network has at least an input, one layer and a softmax_loss");
  const Json* name = document.find("name");
  GraphReader graph(name ? name->as_string() : "network", NodeReader(nodes.front(), 0));
  for (std::size_t i = 1; i + 1 < nodes.size(); ++i) {
    NodeReader node(nodes[i], i);
    graph.read(node);
  }
  NodeReader last(nodes.back(), nodes.size() - 1);
  return graph.finish(last);
}

}  // namespace dtrain::nn
