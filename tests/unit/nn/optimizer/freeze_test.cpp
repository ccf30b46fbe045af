#include <dtrain/nn/freeze.hpp>

#include <gtest/gtest.h>

#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {
namespace {

Graph resnet() { return build_network({.name = "resnet-v1", .num_layers = 8, .image = {3, 32, 32}, .classes = 10}); }

std::set<std::string> learning(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.learns && !node.parameters.empty()) names.insert(node.name);
  }
  return names;
}

std::string first_weight(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (std::holds_alternative<Convolution>(node.layer)) return node.name;
  }
  return {};
}

TEST(Freeze, BackboneLeavesTheLastLayerAlone) {
  Graph graph = resnet();
  const std::int64_t frozen = freeze(graph, "backbone");
  EXPECT_EQ(learning(graph), std::set<std::string>{"fc1"});
  EXPECT_EQ(frozen, static_cast<std::int64_t>(graph.parameters.size()) - 2);
}

TEST(Freeze, BackboneOfADetectorIsWhatLiesBelowItsPyramid) {
  for (const std::string& name : detector_names()) {
    Graph graph = build_network({.name = name, .image = {3, 64, 64}, .classes = 3, .backbone = "resnet-18"});
    freeze(graph, "backbone");
    for (const Node& node : graph.nodes) {
      if (node.parameters.empty()) continue;
      EXPECT_EQ(node.learns, !node.name.starts_with("backbone.body.")) << name << ": " << node.name;
    }
  }
}

TEST(Freeze, ANumberCountsLayersWithWeightsAndTakesTheNormsBehindThem) {
  Graph graph = resnet();
  const std::set<std::string> before = learning(graph);
  freeze(graph, "1");
  const std::set<std::string> after = learning(graph);
  EXPECT_FALSE(after.contains(first_weight(graph)));
  EXPECT_EQ(before.size() - after.size(), 2u);  // the convolution and its norm
}

TEST(Freeze, ZeroLetsAllLayersLearnAgain) {
  Graph graph = resnet();
  const std::set<std::string> before = learning(graph);
  freeze(graph, "backbone");
  EXPECT_EQ(freeze(graph, "0"), 0);
  EXPECT_EQ(learning(graph), before);
}

TEST(Freeze, ZeroLeavesANormBeforeTheFirstWeightsLearning) {
  Graph graph = build_network({.name = "resnet", .num_layers = 8, .image = {3, 28, 28}, .classes = 10});
  const std::set<std::string> before = learning(graph);
  ASSERT_TRUE(before.contains("bn_data"));
  EXPECT_EQ(freeze(graph, "0"), 0);
  EXPECT_EQ(learning(graph), before);
}

TEST(Freeze, APatternNamesLayersAndPartsAddUp) {
  Graph graph = resnet();
  freeze(graph, "stage1_*, 1");
  for (const Node& node : graph.nodes) {
    if (node.parameters.empty()) continue;
    const bool frozen = node.name.starts_with("stage1_") || node.name == "conv0" || node.name == "bn0";
    EXPECT_EQ(node.learns, !frozen) << node.name;
  }
}

TEST(Freeze, RefusesAPatternWithoutALayerAndNamesTheNearest) {
  Graph graph = resnet();
  try {
    freeze(graph, "fc2");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("no layer of " + graph.name), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("fc1"), std::string::npos) << error.hint();
  }
}

TEST(Freeze, RefusesMoreLayersThanThereAreAndLeavingNothingToLearn) {
  Graph graph = resnet();
  EXPECT_THROW(freeze(graph, "99"), UsageError);
  EXPECT_THROW(freeze(graph, "*"), UsageError);
  EXPECT_THROW(freeze(graph, "-3"), UsageError);
  EXPECT_THROW(freeze(graph, "backbone,,"), UsageError);
}

TEST(Freeze, ANetworksFileKeepsIt) {
  Graph graph = resnet();
  freeze(graph, "backbone");
  const Graph again = graph_from_json(Json::parse(graph_to_json(graph).dump(), "graph"), "graph");
  EXPECT_EQ(learning(again), learning(graph));
}

}  // namespace
}  // namespace dtrain::nn
