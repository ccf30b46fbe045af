// MXNet's symbol.json: nnvm's nodes in topological order, each parameter a node of its own before the one that uses it.
// node_row_ptr is left out: it is optional and depends on how MXNet was built.
#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>

#include "graph/float_json.hpp"
#include "graph/layer_shapes.hpp"
#include "graph/tensor_names.hpp"
#include "mxnet_attributes.hpp"
#include "mxnet_operators.hpp"

namespace dtrain::nn {
namespace {

constexpr int kMxnetVersion = 10901;

// Attributes are text, as Python prints values.
struct AttributeWriter {
  Json attributes = Json::object();

  void operator()(const char* key, int value) { attributes[key] = fmt::format("{}", value); }
  void operator()(const char* key, bool value) { attributes[key] = value ? "True" : "False"; }
  void operator()(const char* key, float value) { attributes[key] = float_text(value); }
  void negated(const char* key, bool value) { (*this)(key, !value); }
  void pair(const char* key, int h, int w) { attributes[key] = fmt::format("({}, {})", h, w); }
  void rare_pair(const char* key, int h, int w, int usual) {
    if (h != usual || w != usual) pair(key, h, w);
  }
  template <typename Kind>
  void choice(const char* key, Kind kind, Names names) {
    attributes[key] = names[static_cast<std::size_t>(kind)];
  }
  void fixed(const char* key, const char* text) { attributes[key] = text; }
  void only(const char*, const char*) {}
  void ignore(const char*) {}
};

// The kinds of activation that `Activation` does not have share no operator with others.
bool same_operator(const Layer& a, const Layer& b) {
  if (a.index() != b.index()) return false;
  const auto* one = std::get_if<Activation>(&a);
  const auto* other = std::get_if<Activation>(&b);
  const auto stands_alone = [](const Activation& layer) {
    return static_cast<std::size_t>(layer.kind) >= std::size(kMxnetActivations);
  };
  return !one || one->kind == other->kind || (!stands_alone(*one) && !stands_alone(*other));
}

const char* operator_name(const Node& node) {
  const auto* convolution = std::get_if<Convolution>(&node.layer);
  if (convolution && !convolution->is_evenly_padded()) {
    throw UsageError(fmt::format("{}: MXNet's convolution pads as much below and right as above and left", node.name),
                     "export to onnx or safetensors");
  }
  if (convolution && convolution->is_dense) {
    throw UsageError(fmt::format("{}: MXNet's convolution has no weight of a dense layer, [out, in]", node.name),
                     "export to onnx or safetensors; or leave is_dense out of the network's file");
  }
  const auto* dropout = std::get_if<Dropout>(&node.layer);
  for (const MxnetOperator& known : mxnet_operators()) {
    const bool drops_samples = dropout && dropout->whole_samples;
    if (same_operator(known.defaults, node.layer) && !drops_samples) return known.names.front();
  }
  const auto* activation = std::get_if<Activation>(&node.layer);
  throw UsageError(
      fmt::format("{}: MXNet has no operator for {}", node.name,
                  activation ? kActivationNames[static_cast<std::size_t>(activation->kind)] : layer_kind(node.layer)),
      "export to onnx or safetensors");
}

class SymbolWriter {
 public:
  explicit SymbolWriter(const Graph& graph) : graph_(graph) {}

  Json write() {
    for (const Node& node : graph_.nodes) node_ids_.push_back(add_layer(node));
    Json symbol;
    symbol["nodes"] = std::move(nodes_);
    symbol["arg_nodes"] = std::move(variables_);
    symbol["heads"] = Json::Array{entry(node_ids_.back())};
    symbol["attrs"]["mxnet_version"] = Json::Array{"int", kMxnetVersion};
    return symbol;
  }

 private:
  // A node's first output; nnvm counts version 1 where an operator changes its input, as batch norm does its
  // statistics.
  static Json entry(int node, int version = 0) { return Json::Array{node, 0, version}; }

  int add(Json node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }

  // A frozen one learns at a rate of 0.
  int add_variable(const std::string& name, bool frozen = false) {
    Json variable;
    variable["op"] = "null";
    variable["name"] = name;
    if (frozen) variable["attrs"] = Json::object({{kMxnetRateFactor, "0"}});
    variable["inputs"] = Json::array();
    const int id = add(std::move(variable));
    variables_.emplace_back(id);
    return id;
  }

  int add_layer(const Node& node) {
    if (std::holds_alternative<Input>(node.layer)) return add_variable(node.name);
    Json::Array inputs;
    for (const int input : node.inputs) inputs.emplace_back(entry(node_ids_[static_cast<std::size_t>(input)]));
    for (const TensorView* tensor : tensors_of(graph_, node)) {
      const bool frozen = tensor->role == TensorRole::weight && has_frozen_weight(node.layer);
      inputs.emplace_back(entry(add_variable(tensor->name, frozen), is_statistic(tensor->role) ? 1 : 0));
    }
    if (std::holds_alternative<SoftmaxLoss>(node.layer)) inputs.emplace_back(entry(add_variable(node.name + "_label")));
    Json json;
    json["op"] = operator_name(node);
    json["name"] = node.name;
    if (Json attributes = attributes_of(node); !attributes.as_object().empty()) json["attrs"] = attributes;
    json["inputs"] = std::move(inputs);
    return add(std::move(json));
  }

  Json attributes_of(const Node& node) const {
    Layer layer = node.layer;
    if (auto* loss = std::get_if<SoftmaxLoss>(&layer)) {
      const double smoothing = static_cast<double>(loss->label_smoothing);
      loss->label_smoothing = static_cast<float>(smoothing_to_mxnet(smoothing, graph_.classes()));
    }
    AttributeWriter writer;
    std::visit([&](const auto& kind) { visit_attributes(kind, writer); }, layer);
    if (std::holds_alternative<Concat>(layer)) writer("num_args", static_cast<int>(node.inputs.size()));
    return writer.attributes;
  }

  const Graph& graph_;
  std::vector<int> node_ids_;  // of our nodes, in the symbol
  Json::Array nodes_, variables_;
};

}  // namespace

Json graph_to_mxnet_symbol(const Graph& graph) { return SymbolWriter(graph).write(); }

}  // namespace dtrain::nn
