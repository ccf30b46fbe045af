// What a graph becomes: the operations in their order, and what none of them writes.
#include "lowering/lowering.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/fusion.hpp"
#include "lowering/unwritten.hpp"

namespace dtrain::backend::cpu {
namespace {

using Names = std::vector<std::string>;
using PlaceList = std::vector<std::pair<std::int64_t, std::int64_t>>;

nn::Convolution pointwise() { return {.out = 8, .kernel_h = 1, .kernel_w = 1}; }

// One block of a residual network: relu(norm(convolution)), read by a second convolution and as the residual behind it.
nn::Graph residual_block(nn::BatchNorm second_norm = {}) {
  nn::GraphBuilder b("block", {8, 4, 4});
  const int conv0 = b.add("conv0", pointwise(), {b.input()});
  const int bn0 = b.add("bn0", nn::BatchNorm{}, {conv0});
  const int relu0 = b.add("relu0", nn::Activation{}, {bn0});
  const int conv1 = b.add("conv1", pointwise(), {relu0});
  const int bn1 = b.add("bn1", second_norm, {conv1});
  const int sum = b.add("sum", nn::Add{}, {bn1, relu0});
  const int relu1 = b.add("relu1", nn::Activation{}, {sum});
  const int pool = b.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {relu1});
  return b.finish(b.add("fc", nn::Dense{.out = 3}, {pool}));
}

nn::Node& node_named(nn::Graph& graph, const std::string& name) {
  return *std::ranges::find(graph.nodes, name, &nn::Node::name);
}

Names names_of(const Program& program) {
  Names names;
  for (int index = 0; index < program.size(); ++index) names.push_back(program.op(index).name);
  return names;
}

Lowered lowered_for_training(const nn::Graph& graph, Layers& layers) {
  return lower_training(graph, layers, select_kernels(), {.max_samples = 2});
}

Names trained_names(const nn::Graph& graph) {
  Layers layers(graph, DType::float32);
  return names_of(lowered_for_training(graph, layers).program);
}

PlaceList places_of(const std::vector<Part>& parts) {
  PlaceList places;
  for (const Part& part : parts) places.emplace_back(part.first, part.size);
  return places;
}

PlaceList unwritten_places(const nn::Graph& graph) {
  Layers layers(graph, DType::float32);
  return places_of(lowered_for_training(graph, layers).unwritten);
}

void append_places(const std::vector<nn::TensorView>& views, const std::vector<int>& which, std::int64_t first,
                   PlaceList& places) {
  for (const int view : which) {
    const nn::TensorView& of = views[static_cast<std::size_t>(view)];
    places.emplace_back(first + of.offset, of.size);
  }
}

TEST(LoweringForTraining, WalksForwardAndBackWithEachNormGroupAsOne) {
  EXPECT_EQ(trained_names(residual_block()),
            (Names{"data.load",         "conv0.forward",       "bn0.statistics",
                   "bn0.forward",       "conv1.forward",       "bn1.statistics",
                   "bn1.forward",       "pool.forward",        "fc.forward",
                   "softmax",           "fc.backward_data",    "fc.backward_weights",
                   "fc.backward_bias",  "pool.gradient",       "bn1.gradient_sums",
                   "bn1.gradient",      "conv1.backward_data", "conv1.backward_weights",
                   "bn0.gradient_sums", "bn0.gradient",        "conv0.backward_weights"}));
}

TEST(LoweringForEvaluation, WalksForwardToTheLogits) {
  const nn::Graph graph = residual_block();
  Layers layers(graph, DType::float32);
  EXPECT_EQ(names_of(lower_evaluation(graph, layers, select_kernels(), {.max_samples = 2}).program),
            (Names{"data.load", "conv0.forward", "bn0.forward", "conv1.forward", "bn1.forward", "pool.forward",
                   "fc.forward", "softmax.logits"}));
}

TEST(LoweringForTraining, AddsUpThePartsOfAGradientBeforeItIsRead) {
  nn::GraphBuilder b("three readers", {8, 1, 1});
  const int conv = b.add("conv", pointwise(), {b.input()});
  const int tanh = b.add("tanh", nn::Activation{.kind = nn::ActivationKind::tanh}, {conv});
  const int sigmoid = b.add("sigmoid", nn::Activation{.kind = nn::ActivationKind::sigmoid}, {conv});
  const int two = b.add("two", nn::Add{}, {tanh, sigmoid});
  const int three = b.add("three", nn::Add{}, {two, conv});
  const Names names = trained_names(b.finish(b.add("fc", nn::Dense{.out = 3, .bias = false}, {three})));
  EXPECT_EQ(Names(names.end() - 5, names.end()), (Names{"sigmoid.gradient", "tanh.gradient", "conv.gradient_sum",
                                                        "conv.gradient_sum", "conv.backward_weights"}));
}

// A norm ends segments. Without one a boundary stands where the number of pixels changes.
TEST(LoweringForTraining, EndsSegmentsWhereTheNumberOfPixelsChanges) {
  nn::GraphBuilder b("no norm", {8, 4, 4});
  const int conv = b.add("conv", pointwise(), {b.input()});
  const int pool = b.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {conv});
  EXPECT_EQ(
      trained_names(b.finish(b.add("fc", nn::Dense{.out = 3, .bias = false}, {pool}))),
      (Names{"data.load", "conv.forward", "pool.boundary", "pool.forward", "fc.forward", "softmax", "fc.backward_data",
             "fc.backward_weights", "pool.gradient", "pool.boundary", "conv.backward_weights"}));
}

TEST(UnwrittenParts, AreNoneWhereAllLearns) {
  EXPECT_EQ(unwritten_places(residual_block()), PlaceList{});
  EXPECT_EQ(unwritten_places(residual_block({.fix_gamma = true})), PlaceList{}) << "the norm writes a held gamma, too";
}

TEST(UnwrittenParts, AreTheParametersAndStatisticsOfWhatDoesNotLearn) {
  nn::Graph graph = residual_block();
  PlaceList expected;
  for (const char* const name : {"conv0", "bn0"}) {
    nn::Node& node = node_named(graph, name);
    node.learns = false;
    append_places(graph.parameters, node.parameters, 0, expected);
    append_places(graph.statistics, node.statistics, graph.parameter_count, expected);
  }
  EXPECT_EQ(unwritten_places(graph), expected);
}

TEST(UnwrittenParts, AreAllParametersWhereNoGradientArrives) {
  const nn::Graph graph = residual_block();
  PlaceList expected;
  for (const nn::TensorView& view : graph.parameters) expected.emplace_back(view.offset, view.size);
  EXPECT_EQ(places_of(unwritten_parts(graph, fuse(graph), std::vector<bool>(graph.nodes.size(), false))), expected);
}

}  // namespace
}  // namespace dtrain::backend::cpu
