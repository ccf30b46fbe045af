#include <dtrain/nn/graph_json.hpp>

#include "float_json.hpp"
#include "graph_schema.hpp"
#include "layer_fields.hpp"
#include "tensor_names.hpp"

namespace dtrain::nn {
namespace {

struct FieldWriter {
  Json& node;

  void operator()(const char* key, int value) { node[key] = value; }
  void operator()(const char* key, bool value) { node[key] = value; }
  void operator()(const char* key, float value) { node[key] = float_json(value); }
  template <typename Value>
  void rare(const char* key, Value value, Value usual) {
    if (value != usual) node[key] = value;
  }
  void list(const char* key, const std::vector<float>& values) {
    if (values.empty()) return;
    Json& list = node[key] = Json::array();
    for (const float value : values) list.push_back(float_json(value));
  }
  void pair(const char* key, int h, int w) { node[key] = Json::array({h, w}); }
  void rare_pair(const char* key, int h, int w, int usual) {
    if (h != usual || w != usual) pair(key, h, w);
  }
  template <typename Kind>
  void choice(const char* key, Kind kind, Names names) {
    node[key] = names[static_cast<std::size_t>(kind)];
  }
};

Json shape_json(const Shape& shape) { return Json::array({shape.c, shape.h, shape.w}); }

Json node_json(const Graph& graph, const Node& node) {
  Json json = Json::object({{"name", node.name}, {"layer", layer_kind(node.layer)}});
  if (!node.inputs.empty()) {
    json["inputs"] = Json::array();
    for (const int input : node.inputs) json["inputs"].push_back(graph.nodes[static_cast<std::size_t>(input)].name);
  }
  FieldWriter writer{json};
  std::visit([&](const auto& layer) { visit_fields(layer, writer); }, node.layer);
  if (has_own_tensor_names(graph, node)) {
    json["tensors"] = Json::array();
    for (const TensorView* view : tensors_of(graph, node)) json["tensors"].push_back(view->name);
  }
  if (!node.learns) json[kLearns] = false;
  json["shape"] = shape_json(node.output);
  return json;
}

}  // namespace

Json graph_to_json(const Graph& graph) {
  Json::Array nodes;
  for (const Node& node : graph.nodes) nodes.push_back(node_json(graph, node));
  return Json::object({{"schema", kGraphSchema}, {"name", graph.name}, {"nodes", std::move(nodes)}});
}

}  // namespace dtrain::nn
