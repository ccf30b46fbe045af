#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

#include "nn/same_graph.hpp"

namespace dtrain::nn {
namespace {

constexpr std::string_view kSmall = R"({"schema": "dtrain.graph/1", "name": "own", "nodes": [
  {"name": "data", "layer": "input", "shape": [3, 8, 8]},
  {"name": "conv", "layer": "convolution", "out": 4, "kernel": 3, "pad": [1, 1], "bias": true},
  {"name": "bn", "layer": "batch_norm", "epsilon": 1e-3},
  {"name": "relu", "layer": "activation", "kind": "relu"},
  {"name": "sum", "layer": "add", "inputs": ["relu", "conv"]},
  {"name": "pool", "layer": "pooling", "kind": "average", "global": true},
  {"name": "drop", "layer": "dropout", "p": 0.25},
  {"name": "fc", "layer": "dense", "out": 5},
  {"name": "loss", "layer": "softmax_loss", "label_smoothing": 0.1}]})";

Graph read(std::string_view text) { return graph_from_json(Json::parse(text, "net.json"), "net.json"); }

std::string replaced(std::string_view from, std::string_view to) {
  std::string text(kSmall);
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

TEST(GraphJson, EveryNetworkSurvivesTheRoundTrip) {
  for (const std::string& name : network_names()) {
    const Graph graph = build_network(
        {.name = name, .image = images_for(name), .classes = 10, .label_smoothing = label_smoothing_for(name)});
    const Json json = Json::parse(graph_to_json(graph).dump(), "test");
    expect_same(graph_from_json(json, "test", graph.input(), 10), graph);
  }
}

TEST(GraphJson, ReadsWhatAPersonWrites) {
  const Graph graph = read(kSmall);
  EXPECT_EQ(graph.name, "own");
  EXPECT_EQ(graph.nodes[1].output, (Shape{4, 8, 8}));
  EXPECT_EQ(graph.nodes[4].inputs, (std::vector<int>{3, 1}));
  EXPECT_EQ(std::get<BatchNorm>(graph.nodes[2].layer).epsilon, 1e-3f);
  EXPECT_EQ(std::get<BatchNorm>(graph.nodes[2].layer).momentum, BatchNorm{}.momentum);
  EXPECT_EQ(std::get<SoftmaxLoss>(graph.nodes.back().layer).label_smoothing, 0.1f);
  expect_same(graph_from_json(graph_to_json(graph), "again"), graph);
}

TEST(GraphJson, DilationAndUnevenPaddingStandThereWhereTheyMatter) {
  const std::string text = replaced("\"pad\": [1, 1]", "\"pad\": 1, \"dilation\": 2, \"extra_pad\": [2, 0]");
  const Graph graph = read(text);
  EXPECT_EQ(graph.nodes[1].output, (Shape{4, 8, 6}));
  const std::string written = graph_to_json(graph).dump();
  expect_same(read(written), graph);
  EXPECT_NE(written.find("dilation"), written.npos);
  EXPECT_EQ(graph_to_json(read(kSmall)).dump().find("dilation"), std::string::npos);
}

TEST(GraphJson, ALocalResponseNormSurvivesTheRoundTrip) {
  const Graph graph = read(replaced("\"activation\", \"kind\": \"relu\"",
                                    "\"local_response_norm\", \"alpha\": 0.5, \"bias\": 2, \"size\": 7"));
  EXPECT_EQ(std::get<LocalResponseNorm>(graph.nodes[3].layer).size, 7);
  expect_same(read(graph_to_json(graph).dump()), graph);
}

TEST(GraphJson, EveryKindOfLossSurvivesTheRoundTrip) {
  Graph graph = read(kSmall);
  const SoftmaxLoss loss{.label_smoothing = 0.1f,
                         .kind = LossKind::sigmoid,
                         .focal_gamma = 1.5f,
                         .target_threshold = 0.2f,
                         .class_weights = {1, 0.3f, 2, 0, 1}};
  set_loss(graph, loss);
  EXPECT_EQ(loss_of(graph_from_json(Json::parse(graph_to_json(graph).dump(), "again"), "again")), loss);
}

TEST(GraphJson, RefusesALossThatMakesNoSense) {
  const auto mistake_with = [](const std::string& attribute) {
    return mistake(replaced("\"label_smoothing\": 0.1", attribute));
  };
  EXPECT_EQ(mistake_with(R"("class_weights": [1, 2])"), "net.json: loss: 2 class weights for 5 classes | ");
  EXPECT_EQ(mistake_with(R"("class_weights": [1, 2, -3, 0, 0])"),
            "net.json: loss: a class weight of -3 makes no sense | ");
  EXPECT_EQ(mistake_with(R"("class_weights": 3)"), "net.json: loss: \"class_weights\" must be a list of numbers | ");
  EXPECT_EQ(mistake_with(R"("focal_gamma": -1)"), "net.json: loss: a focal gamma of -1 is below 0 | ");
  Graph graph = read(kSmall);
  EXPECT_THROW(set_loss(graph, {.class_weights = {1}}), UsageError);
  EXPECT_TRUE(loss_of(graph).class_weights.empty()) << "it stays as it was";
}

TEST(GraphJson, TensorsMayHaveTheirOwnNames) {
  const Graph graph = read(replaced("\"bias\": true", "\"bias\": true, \"tensors\": [\"w\", \"b\"]"));
  EXPECT_EQ(graph.parameters[0].name, "w");
  EXPECT_EQ(graph.parameters[1].name, "b");
  expect_same(graph_from_json(graph_to_json(graph), "again"), graph);
  EXPECT_NE(mistake(replaced("\"bias\": true", "\"bias\": true, \"tensors\": [\"w\"]")).find("conv"),
            std::string::npos);
  EXPECT_NE(mistake(replaced("\"bias\": true", "\"tensors\": [\"bn_beta\"]")).find("bn_beta"), std::string::npos);
}

TEST(GraphJson, EveryMistakeNamesFileNodeAndAttribute) {
  EXPECT_EQ(mistake(replaced("batch_norm", "bathc_norm")),
            "net.json: bn: there is no layer \"bathc_norm\" | did you mean batch_norm?");
  EXPECT_EQ(mistake(replaced("epsilon", "epsilno")),
            "net.json: bn: has no attribute \"epsilno\" | did you mean epsilon?");
  EXPECT_EQ(mistake(replaced("\"kind\": \"relu\"", "\"kind\": \"rellu\"")),
            "net.json: relu: \"kind\" cannot be \"rellu\" | did you mean relu?");
  EXPECT_EQ(mistake(replaced("\"relu\", \"conv\"", "\"relu\", \"cnov\"")),
            "net.json: sum: its input \"cnov\" is no earlier layer | ");
  EXPECT_EQ(mistake(replaced("\"out\": 4", "\"out\": 4.5")), "net.json: conv: \"out\" must be a whole number | ");
  EXPECT_EQ(mistake(replaced("\"out\": 4", "\"out\": 1e10")), "net.json: conv: \"out\" must be a whole number | ");
  EXPECT_EQ(mistake(replaced("[1, 1]", "[1]")), "net.json: conv: \"pad\" must be [h, w] | ");
  EXPECT_EQ(mistake(replaced("0.25", "true")), "net.json: drop: \"p\" must be a number | ");
  EXPECT_EQ(mistake(replaced("true}", "1}")), "net.json: conv: \"bias\" must be true or false | ");
  EXPECT_EQ(mistake(replaced("\"name\": \"bn\", ", "")), "net.json: node 2: \"name\" is missing | ");
}

TEST(GraphJson, LayersThatDoNotFitAreNamed) {
  EXPECT_EQ(mistake(replaced("\"kernel\": 3", "\"kernel\": 11")).find("net.json: conv: a window of 11"), 0u);
  EXPECT_EQ(mistake(replaced("\"relu\", \"conv\"", "\"relu\", \"data\"")).find("net.json: sum: cannot add 4x8x8"), 0u);
  EXPECT_EQ(mistake(replaced("\"out\": 5", "\"out\": 0")).find("net.json: fc: 0 outputs"), 0u);
  EXPECT_EQ(mistake(replaced("\"name\": \"bn\"", "\"name\": \"conv\"")).find("net.json: conv: two layers"), 0u);
  EXPECT_EQ(mistake(replaced("\"p\": 0.25", "\"inputs\": [\"sum\"]")).find("net.json: pool: no layer uses"), 0u);
  EXPECT_NE(mistake(replaced("[3, 8, 8]", "[16777216, 16777216, 2]")).find("is no image"), std::string::npos);
  EXPECT_NE(mistake(replaced("\"out\": 5", "\"out\": -5")).find("-5 outputs"), std::string::npos);
}

TEST(GraphJson, BeginsWithAnInputAndEndsWithTheLoss) {
  EXPECT_EQ(mistake(replaced("\"input\"", "\"flatten\"")), "net.json: data: the first layer must be an input | ");
  EXPECT_EQ(mistake(replaced("\"softmax_loss\", \"label_smoothing\": 0.1", "\"flatten\"")),
            "net.json: loss: the last layer must be a softmax_loss, a detection_loss or a region_loss | ");
  EXPECT_EQ(mistake(replaced("\"dense\", \"out\": 5", "\"softmax_loss\"")), "net.json: fc: the loss comes last | ");
  EXPECT_NE(mistake(R"({"schema": "dtrain.graph/1", "nodes": []})"), "no error");
  EXPECT_NE(mistake(R"({"schema": "dtrain.graph/2", "nodes": []})").find("dtrain.graph/1"), std::string::npos);
  EXPECT_NE(mistake("[]"), "no error");
}

TEST(GraphJson, DisagreementWithTheOptionsIsAUsageError) {
  const Json json = Json::parse(kSmall, "test");
  EXPECT_NO_THROW(graph_from_json(json, "net.json", Shape{3, 8, 8}, 5));
  EXPECT_THROW(graph_from_json(json, "net.json", Shape{3, 9, 8}), UsageError);
  EXPECT_THROW(graph_from_json(json, "net.json", {}, 6), UsageError);
}

// Whatever stands at any byte, reading ends in a graph or in an Error.
TEST(GraphJson, NoChangedByteDoesMoreThanThrowAnError) {
  std::string text(kSmall);
  int refused = 0;
  for (char& byte : text) {
    const char original = byte;
    for (const char other : {'\0', '"', '0', '9', '-', '[', ']', '{', '}', ',', 'e', '\xff'}) {
      byte = other;
      refused += mistake(text) != "no error";
    }
    byte = original;
  }
  EXPECT_GT(refused, static_cast<int>(text.size()));
  EXPECT_EQ(mistake(text), "no error");
}

TEST(GraphJson, NoTruncationDoesMoreThanThrowAnError) {
  for (std::size_t size = 0; size < kSmall.size(); ++size)
    EXPECT_NE(mistake(std::string(kSmall.substr(0, size))), "no error");
}

}  // namespace
}  // namespace dtrain::nn
