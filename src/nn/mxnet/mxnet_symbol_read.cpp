#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>

#include "graph/graph_schema.hpp"
#include "graph/layer_shapes.hpp"
#include "graph/tensor_names.hpp"
#include "mxnet_attributes.hpp"
#include "mxnet_operators.hpp"

namespace dtrain::nn {
namespace {

struct SymbolNode {
  std::string op, name;
  AttributeReader::Attributes attributes;
  std::vector<std::size_t> inputs;  // earlier nodes
  bool is_variable() const { return op == "null"; }
};

// The node of an entry [node, output, version]; nodes below `limit` are known.
std::size_t entry_node(const Json& entry, std::size_t limit, const std::string& where) {
  const Json::Array& numbers = entry.as_array();
  if (numbers.size() < 2) throw DataError(fmt::format("{}: an input is not [node, output]", where));
  const std::int64_t node = numbers[0].as_integer();
  if (node < 0 || !std::in_range<std::size_t>(node) || static_cast<std::size_t>(node) >= limit) {
    throw DataError(fmt::format("{}: its input {} is no earlier node", where, node));
  }
  if (numbers[1].as_integer() != 0) throw DataError(fmt::format("{}: uses a second output of a node", where));
  return static_cast<std::size_t>(node);
}

SymbolNode read_node(const Json& json, std::size_t index) {
  SymbolNode node{json.at("op").as_string(), json.at("name").as_string(), {}, {}};
  for (const char* key : {"attrs", "attr", "param"}) {  // of 1.x, of 0.9 on, before 0.9
    const Json* attributes = json.find(key);
    if (!attributes) continue;
    for (const auto& [name, value] : attributes->as_object()) node.attributes.emplace_back(name, value.as_string());
  }
  for (const Json& entry : json.at("inputs").as_array()) node.inputs.push_back(entry_node(entry, index, node.name));
  return node;
}

const MxnetOperator& find_operator(const SymbolNode& node) {
  std::vector<const char*> all(std::begin(kPassthroughs), std::end(kPassthroughs));
  for (const MxnetOperator& known : mxnet_operators()) {
    if (index_of(known.names, node.op)) return known;
    all.insert(all.end(), known.names.begin(), known.names.end());
  }
  throw DataError(fmt::format("{}: the operator {} is not supported", node.name, node.op), advice(all, node.op));
}

class SymbolReader {
 public:
  explicit SymbolReader(const Json& document) {
    const Json::Array& nodes = document.at("nodes").as_array();
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes_.push_back(read_node(nodes[i], i));
    const Json::Array& heads = document.at("heads").as_array();
    if (heads.size() != 1) throw DataError(fmt::format("a network has one output, this symbol has {}", heads.size()));
    head_ = entry_node(heads[0], nodes_.size(), "heads");
  }

  Graph build(const Shape& image) {
    GraphBuilder builder("mxnet-symbol", image, nodes_[find_data()].name);
    values_.assign(nodes_.size(), std::nullopt);
    values_[find_data()] = builder.input();
    for (std::size_t i = 0; i <= head_; ++i) {
      if (i != head_ || !is_loss(nodes_[i])) add(builder, i);
    }
    Graph graph = finish(builder);
    for (const auto& [node, names] : tensor_names_) rename_tensors(graph, node, names);
    require_distinct_tensor_names(graph);
    return graph;
  }

 private:
  static bool is_loss(const SymbolNode& node) {
    return !node.is_variable() && !index_of(kPassthroughs, node.op) &&
           std::holds_alternative<SoftmaxLoss>(find_operator(node).defaults);
  }

  bool is_weight_of_convolution(std::size_t variable) const {
    return std::ranges::any_of(nodes_, [&](const SymbolNode& node) {
      return node.inputs.size() > 1 && node.inputs[1] == variable &&
             std::holds_alternative<Convolution>(find_operator(node).defaults);
    });
  }

  // The variable that an operator reads as its data: parameters and labels come after the first input.
  std::size_t find_data() const {
    for (const SymbolNode& node : nodes_) {
      if (!node.is_variable() && !node.inputs.empty() && nodes_[node.inputs[0]].is_variable()) return node.inputs[0];
    }
    throw DataError("no operator reads a variable as its data");
  }

  int value(const SymbolNode& node, std::size_t input) const {
    if (input >= node.inputs.size()) throw DataError(fmt::format("{}: has too few inputs", node.name));
    if (const auto value = values_[node.inputs[input]]) return *value;
    throw DataError(
        fmt::format("{}: its input {} is neither a layer nor the data", node.name, nodes_[node.inputs[input]].name));
  }

  Layer read_layer(const SymbolNode& node) const {
    Layer layer = find_operator(node).defaults;
    AttributeReader reader(fmt::format("{} ({})", node.name, node.op), node.attributes);
    std::visit([&](auto& kind) { visit_attributes(kind, reader); }, layer);
    reader.require_all_known();
    if (auto* convolution = std::get_if<Convolution>(&layer)) convolution->frozen = has_frozen_input(node, 1);
    return layer;
  }

  bool has_frozen_input(const SymbolNode& node, std::size_t input) const {
    if (input >= node.inputs.size()) return false;
    const SymbolNode& variable = nodes_[node.inputs[input]];
    return AttributeReader(variable.name, variable.attributes).is_frozen();
  }

  void add(GraphBuilder& builder, std::size_t index) {
    const SymbolNode& node = nodes_[index];
    if (node.is_variable()) {
      const AttributeReader reader(node.name, node.attributes);
      if (!is_weight_of_convolution(index) || !reader.is_frozen()) reader.require_no_factors();
    } else if (index_of(kPassthroughs, node.op)) {
      values_[index] = value(node, 0);
    } else {
      Layer layer = read_layer(node);
      std::vector<int> inputs{value(node, 0)};
      for (std::size_t input = 1; input < data_inputs(layer, node); ++input) inputs.push_back(value(node, input));
      const std::size_t first_tensor = inputs.size();
      const bool has_tensors = !layer_tensors(layer, {1}).empty();
      const int added = builder.add(node.name, std::move(layer), std::move(inputs));
      values_[index] = added;
      if (has_tensors) tensor_names_.emplace_back(added, tensor_names(node, first_tensor));
    }
  }

  // The others are tensors.
  static std::size_t data_inputs(const Layer& layer, const SymbolNode& node) {
    if (std::holds_alternative<Concat>(layer)) return node.inputs.size();
    return std::holds_alternative<Add>(layer) || std::holds_alternative<Multiply>(layer) ? 2 : 1;
  }

  std::vector<std::string> tensor_names(const SymbolNode& node, std::size_t first) const {
    std::vector<std::string> names;
    for (std::size_t i = first; i < node.inputs.size(); ++i) {
      const SymbolNode& variable = nodes_[node.inputs[i]];
      if (!variable.is_variable())
        throw DataError(fmt::format("{}: its tensor {} is computed", node.name, variable.name));
      names.push_back(variable.name);
    }
    // Before 0.9 symbols did not list the statistics.
    if (find_operator(node).defaults.index() == Layer(BatchNorm{}).index() && names.size() == 2) {
      names.insert(names.end(), {node.name + "_moving_mean", node.name + "_moving_var"});
    }
    return names;
  }

  // A symbol may end in its loss or, saved for inference, in the logits.
  Graph finish(GraphBuilder& builder) const {
    const SymbolNode& head = nodes_[head_];
    if (head.is_variable()) throw DataError(fmt::format("{}: the output is a variable", head.name));
    if (!is_loss(head)) return builder.finish(*values_[head_]);
    const Layer layer = read_layer(head);
    const int logits = value(head, 0);
    const auto alpha = static_cast<double>(std::get<SoftmaxLoss>(layer).label_smoothing);
    const int classes = std::max(2, builder.shape(logits).c);
    return builder.finish(logits, static_cast<float>(smoothing_from_mxnet(alpha, classes)), head.name);
  }

  std::vector<SymbolNode> nodes_;
  std::size_t head_ = 0;
  std::vector<std::optional<int>> values_;  // the graph's node that computes each of the symbol's
  std::vector<std::pair<int, std::vector<std::string>>> tensor_names_;  // of the graph's nodes, by index
};

}  // namespace

Graph graph_from_mxnet_symbol(const Json& document, const Shape& image) { return SymbolReader(document).build(image); }

}  // namespace dtrain::nn
