#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

#include "same_graph.hpp"

namespace dtrain::nn {
namespace {

constexpr Shape kImage{3, 8, 8};

// What MXNet 1.9.1 saves: variables inherit attributes, statistics have version 1.
constexpr std::string_view kSymbol = R"json({"nodes": [
  {"op": "null", "name": "data", "inputs": []},
  {"op": "_copy", "name": "id", "inputs": [[0, 0, 0]]},
  {"op": "null", "name": "w", "attrs": {"kernel": "(3, 3)", "num_filter": "4"}, "inputs": []},
  {"op": "null", "name": "b", "inputs": []},
  {"op": "Convolution", "name": "conv", "attrs": {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)",
   "workspace": "256"}, "inputs": [[1, 0, 0], [2, 0, 0], [3, 0, 0]]},
  {"op": "null", "name": "bn_gamma", "inputs": []},
  {"op": "null", "name": "bn_beta", "inputs": []},
  {"op": "null", "name": "bn_mean", "attrs": {"__init__": "zero"}, "inputs": []},
  {"op": "null", "name": "bn_var", "inputs": []},
  {"op": "BatchNorm", "name": "bn", "inputs": [[4, 0, 0], [5, 0, 0], [6, 0, 0], [7, 0, 1], [8, 0, 1]]},
  {"op": "elemwise_add", "name": "_plus0", "inputs": [[9, 0, 0], [4, 0, 0]]},
  {"op": "Pooling", "name": "pool", "attrs": {"global_pool": "True", "pool_type": "avg"}, "inputs": [[10, 0, 0]]},
  {"op": "null", "name": "fc_weight", "inputs": []},
  {"op": "FullyConnected", "name": "fc", "attrs": {"num_hidden": "5", "no_bias": "True"},
   "inputs": [[11, 0, 0], [12, 0, 0]]},
  {"op": "null", "name": "softmax_label", "inputs": []},
  {"op": "SoftmaxOutput", "name": "softmax", "attrs": {"smooth_alpha": "0.08"}, "inputs": [[13, 0, 0], [14, 0, 0]]}],
  "arg_nodes": [0, 2, 3, 5, 6, 7, 8, 12, 14], "heads": [[15, 0, 0]], "attrs": {"mxnet_version": ["int", 10901]}})json";

Graph read(std::string_view text) { return graph_from_json(Json::parse(text, "s.json"), "s.json", kImage); }

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kSymbol);
  return text.replace(text.find(from), from.size(), to);
}

// Message and hint.
std::string mistake(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

TEST(MxnetSymbol, ReadsLayersWithMxnetsDefaults) {
  const Graph graph = read(kSymbol);
  EXPECT_EQ(graph.nodes.size(), 7u);
  EXPECT_TRUE(std::get<Convolution>(graph.nodes[1].layer).bias);
  const auto& batch_norm = std::get<BatchNorm>(graph.nodes[2].layer);
  EXPECT_EQ(batch_norm.epsilon, 1e-3f);
  EXPECT_EQ(batch_norm.momentum, 0.9f);
  EXPECT_TRUE(batch_norm.fix_gamma);
  EXPECT_EQ(graph.nodes[3].inputs, (std::vector<int>{2, 1}));
  EXPECT_FALSE(std::get<Dense>(graph.nodes[5].layer).bias);
  EXPECT_EQ(graph.input(), kImage);
}

TEST(MxnetSymbol, ReadsAndWritesDilationAndLocalResponseNorms) {
  std::string text = replaced("\"workspace\": \"256\"", "\"dilate\": \"(2, 2)\"");
  const std::string_view pool = R"("Pooling", "name": "pool", "attrs": {"global_pool": "True", "pool_type": "avg"})";
  text.replace(text.find(pool), pool.size(), R"("LRN", "name": "pool", "attrs": {"nsize": "3", "alpha": "0.001"})");
  const Graph graph = read(text);
  EXPECT_EQ(std::get<Convolution>(graph.nodes[1].layer).dilation_w, 2);
  EXPECT_EQ(graph.nodes[1].output, (Shape{4, 6, 6}));
  const auto& norm = std::get<LocalResponseNorm>(graph.nodes[4].layer);
  EXPECT_EQ(norm.size, 3);
  EXPECT_EQ(norm.bias, 2);
  EXPECT_EQ(norm.alpha, 0.001f);
  expect_same(graph_from_json(graph_to_mxnet_symbol(graph), "s.json", kImage), graph);
}

TEST(MxnetSymbol, RefusesToWriteUnevenPadding) {
  GraphBuilder builder("graph", kImage);
  const int conv = builder.add("conv", Convolution{.out = 4, .extra_h = 1}, {0});
  const Graph graph = builder.finish(builder.add("fc", Dense{2}, {conv}));
  EXPECT_THROW(graph_to_mxnet_symbol(graph), UsageError);
}

// Its weight, [out, in], would not be that of the operator.
TEST(MxnetSymbol, RefusesToWriteADenseLayerOfEachPixel) {
  GraphBuilder builder("graph", kImage);
  const int conv = builder.add("conv", Convolution{.out = 4, .is_dense = true}, {0});
  const Graph graph = builder.finish(builder.add("fc", Dense{2}, {conv}));
  EXPECT_THROW(graph_to_mxnet_symbol(graph), UsageError);
}

TEST(MxnetSymbol, TensorsKeepTheNamesOfTheVariables) {
  const Graph graph = read(kSymbol);
  EXPECT_EQ(graph.parameters[0].name, "w");
  EXPECT_EQ(graph.parameters[1].name, "b");
  EXPECT_EQ(graph.statistics[0].name, "bn_mean");
  EXPECT_EQ(graph.statistics[1].role, TensorRole::running_variance);
  expect_same(graph_from_json(graph_to_json(graph), "ours"), graph);
}

TEST(MxnetSymbol, SmoothingIsSpreadOverAllClassesInsteadOfTheOthers) {
  const Graph graph = read(kSymbol);
  EXPECT_FLOAT_EQ(std::get<SoftmaxLoss>(graph.nodes.back().layer).label_smoothing, 0.1f);  // 0.08 * 5 / 4
}

bool has_layer_without_operator(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    if (std::holds_alternative<LayerNorm>(node.layer) || std::holds_alternative<Upsample>(node.layer)) return true;
    const auto* activation = std::get_if<Activation>(&node.layer);
    return activation && (activation->kind == ActivationKind::silu || activation->kind == ActivationKind::hard_swish);
  });
}

TEST(MxnetSymbol, EveryNetworkSurvivesTheRoundTrip) {
  for (const std::string& name : network_names()) {
    Graph graph =
        build_network({.name = name, .image = images_for(name), .label_smoothing = label_smoothing_for(name)});
    for (Node& node : graph.nodes) {  // a symbol does not say how weights begin
      if (auto* convolution = std::get_if<Convolution>(&node.layer)) convolution->initial = InitialWeight::he;
    }
    if (has_layer_without_operator(graph)) {
      EXPECT_THROW(graph_to_mxnet_symbol(graph), UsageError) << name;
      continue;
    }
    const Json json = Json::parse(graph_to_mxnet_symbol(graph).dump(), "test");
    expect_same(graph_from_json(json, "test", graph.input(), 10), graph);
  }
}

TEST(MxnetSymbol, EveryLayerKindSurvivesTheRoundTrip) {
  GraphBuilder all("all", {4, 16, 12});
  const int conv = all.add("conv", Convolution{4, 3, 5, 2, 1, 1, 2, 2, true, true}, {all.input()});
  const int six = all.add("six", Activation{ActivationKind::relu6}, {conv});
  const int sigmoid = all.add("sigmoid", Activation{ActivationKind::sigmoid}, {conv});
  const int gelu = all.add("gelu", Activation{ActivationKind::gelu}, {sigmoid});
  const int sum = all.add("sum", Add{}, {six, gelu});
  const int pooled = all.add("pooled", Pooling{.kind = PoolingKind::average, .global = true}, {sum});
  const int gate = all.add("gate", Activation{ActivationKind::hard_sigmoid}, {pooled});
  const int scaled = all.add("scaled", Multiply{}, {sum, gate});
  const int both = all.add("both", Concat{}, {sum, scaled, six});
  const int norm = all.add("bn", BatchNorm{1e-4f, 0.8f, false}, {both});
  const int pool = all.add("pool", Pooling{PoolingKind::average, 3, 2, 2, 1, 1, 0, false, true, false}, {norm});
  const int flat = all.add("flat", Flatten{}, {all.add("drop", Dropout{0.3f}, {pool})});
  const int dense = all.add("fc", Dense{3, false}, {flat});
  const Graph graph = all.finish(all.add("scale", Scale{0.25f}, {dense}), 0.0f, "loss");
  expect_same(graph_from_json(graph_to_mxnet_symbol(graph), "test", graph.input()), graph);
}

TEST(MxnetSymbol, LayersWithoutAnOperatorAreNamed) {
  const auto refused = [](const Layer& layer) {
    GraphBuilder builder("one", {4, 2, 2});
    const int middle = builder.add("middle", layer, {builder.input()});
    const Graph graph = builder.finish(builder.add("fc", Dense{3}, {middle}));
    try {
      graph_to_mxnet_symbol(graph);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(refused(LayerNorm{}), "middle: MXNet has no operator for layer_norm");
  EXPECT_EQ(refused(LayerScale{}), "middle: MXNet has no operator for layer_scale");
  EXPECT_EQ(refused(Dropout{.p = 0.5f, .whole_samples = true}), "middle: MXNet has no operator for dropout");
  EXPECT_EQ(refused(Activation{ActivationKind::silu}), "middle: MXNet has no operator for silu");
  EXPECT_EQ(refused(Dropout{}), "no error");
}

TEST(MxnetSymbol, ARateOfZeroFreezesAConvolutionsWeightAndNothingElse) {
  const Graph graph =
      read(replaced("\"name\": \"w\", \"attrs\": {", "\"name\": \"w\", \"attrs\": {\"__lr_mult__\": \"0\", "));
  EXPECT_TRUE(std::get<Convolution>(graph.nodes[1].layer).frozen);
  EXPECT_FALSE(std::get<Convolution>(read(kSymbol).nodes[1].layer).frozen);
  EXPECT_EQ(mistake(replaced("\"__init__\": \"zero\"", "\"__lr_mult__\": \"0\"")),
            "s.json: bn_mean: __lr_mult__ = 0 is not supported | ");
}

TEST(MxnetSymbol, ASymbolThatEndsInLogitsGetsItsLoss) {
  const Graph graph = read(replaced("\"heads\": [[15, 0, 0]]", "\"heads\": [[13, 0, 0]]"));
  EXPECT_EQ(graph.nodes.back().name, "softmax");
  EXPECT_EQ(graph.classes(), 5);
}

TEST(MxnetSymbol, OlderVersionsKeepAttributesElsewhere) {
  EXPECT_EQ(std::get<Convolution>(read(replaced("\"conv\", \"attrs\"", "\"conv\", \"param\"")).nodes[1].layer).out, 4);
  EXPECT_EQ(std::get<Convolution>(read(replaced("\"conv\", \"attrs\"", "\"conv\", \"attr\"")).nodes[1].layer).out, 4);
  const Graph graph = read(replaced(", [7, 0, 1], [8, 0, 1]", ""));
  EXPECT_EQ(graph.statistics[0].name, "bn_moving_mean");
}

TEST(MxnetSymbol, EveryMistakeNamesFileNodeAndAttribute) {
  EXPECT_EQ(mistake(replaced("\"op\": \"Convolution\"", "\"op\": \"Deconvolution\"")),
            "s.json: conv: the operator Deconvolution is not supported | did you mean Convolution?");
  EXPECT_EQ(mistake(replaced("\"workspace\"", "\"workspaec\"")),
            "s.json: conv (Convolution): has the unknown attribute workspaec | did you mean workspace?");
  EXPECT_EQ(mistake(replaced("\"workspace\": \"256\"", "\"dilate\": \"(2, )\"")),
            "s.json: conv (Convolution): dilate = (2, ) is not supported | ");
  EXPECT_EQ(mistake(replaced("\"pad\": \"(1, 1)\"", "\"pad\": \"(1,)\"")),
            "s.json: conv (Convolution): pad = (1,) is not supported | ");
  EXPECT_EQ(
      mistake(replaced("\"pool_type\": \"avg\"", "\"pool_type\": \"sum\"")).find("s.json: pool (Pooling): pool_type"),
      0u);
  EXPECT_EQ(mistake(replaced("\"__init__\": \"zero\"", "\"__lr_mult__\": \"0.5\"")),
            "s.json: bn_mean: __lr_mult__ = 0.5 is not supported | ");
  EXPECT_EQ(mistake(replaced("\"num_filter\": \"4\", \"pad\"", "\"pad\"")), "s.json: conv: 0 output channels | ");
}

TEST(MxnetSymbol, RefusesGraphsThatAreNoNetwork) {
  EXPECT_EQ(mistake(replaced("[[13, 0, 0], [14, 0, 0]]", "[[13, 0, 0], [99, 0, 0]]")),
            "s.json: softmax: its input 99 is no earlier node | ");
  EXPECT_EQ(mistake(replaced("[[10, 0, 0]]", "[[10, 1, 0]]")), "s.json: pool: uses a second output of a node | ");
  EXPECT_EQ(mistake(replaced("[[10, 0, 0]]", "[[6, 0, 0]]")),
            "s.json: pool: its input bn_beta is neither a layer nor the data | ");
  EXPECT_EQ(mistake(replaced("[12, 0, 0]", "[2, 0, 0]")),
            "s.json: two layers use the tensor w: sharing is not supported | ");
  EXPECT_EQ(mistake(replaced("\"heads\": [[15, 0, 0]]", "\"heads\": [[15, 0, 0], [9, 0, 0]]")),
            "s.json: a network has one output, this symbol has 2 | ");
  EXPECT_EQ(mistake(replaced("\"elemwise_add\", \"name\": \"_plus0\"", "\"SoftmaxOutput\", \"name\": \"early\"")),
            "s.json: early: the loss comes last | ");
  EXPECT_NE(mistake(replaced(", [3, 0, 0]", "")), "no error");
}

TEST(MxnetSymbol, AsksForTheSizeOfTheImages) {
  EXPECT_THROW(graph_from_json(Json::parse(kSymbol, "s.json"), "s.json"), UsageError);
}

// Whatever stands at any byte, reading ends in a graph or in an Error.
TEST(MxnetSymbol, NoChangedByteDoesMoreThanThrowAnError) {
  std::string text(kSymbol);
  int refused = 0;
  for (char& byte : text) {
    const char original = byte;
    for (const char other : {'\0', '"', '0', '9', '-', ']', '{', ',', '\xff'}) {
      byte = other;
      refused += mistake(text) != "no error";
    }
    byte = original;
  }
  EXPECT_GT(refused, static_cast<int>(text.size()));
  EXPECT_EQ(mistake(text), "no error");
}

}  // namespace
}  // namespace dtrain::nn
