#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/optimizer.hpp>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

std::vector<std::string> graphs(Json (*write)(const nn::Graph&)) {
  std::vector<std::string> texts;
  for (const char* name : {"resnet", "lenet", "mlp"}) {
    const int layers = std::string_view(name) == "resnet" ? 8 : 0;
    texts.push_back(write(nn::build_network({.name = name, .num_layers = layers})).dump(1));
  }
  return texts;
}

void parse_graph(const std::string& input) {
  nn::graph_from_json(Json::parse(input, "input"), "input", nn::Shape{3, 28, 28}, 10);
}

}  // namespace

std::vector<Target> text_targets() {
  return {
      {"json",
       {R"({"a": [1, -2.5e3, true, null, "\u00e4\n"], "b": {"c": {}}})"},
       [](const std::string& input) { Json::parse(Json::parse(input, "input").dump(), "dumped"); }},
      {"graph", graphs(nn::graph_to_json), parse_graph},
      {"mxnet-symbol", graphs(nn::graph_to_mxnet_symbol), parse_graph},
      {"optimizer",
       {nn::to_json(nn::Optimizer{}).dump()},
       [](const std::string& input) { nn::optimizer_from_json(Json::parse(input, "input")); }},
      {"schedule",
       {nn::to_json(nn::Schedule{}).dump()},
       [](const std::string& input) { nn::schedule_from_json(Json::parse(input, "input")); }},
  };
}

}  // namespace dtrain::fuzz
