#include "weights/onnx_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/synchronized_norms.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"
#include "train/weights/onnx_sketch.hpp"

namespace dtrain::train {
namespace {

using namespace onnx;
using data::expect_error;

Sketch small_model() {
  Sketch model;
  model.tensor("first.weight", {3, 2, 3, 3}).tensor("head", {12, 5}).tensor("shift", {5});
  model.node("Conv", {"image", "first.weight"}, "a");
  model.node("Sigmoid", {"a"}, "b").node("Mul", {"a", "b"}, "c").node("Flatten", {"c"}, "d");
  model.node("MatMul", {"d", "head"}, "e").node("Add", {"shift", "e"}, "f").node("Softmax", {"f"}, "g");
  return model;
}

TEST(OnnxNetwork, HasALayerForWhatOperatorsComputeTogether) {
  const std::string file = small_model().file();
  const nn::Graph graph = read_sketch(file).graph;
  std::vector<std::string> kinds;
  for (const nn::Node& node : graph.nodes) kinds.emplace_back(nn::layer_kind(node.layer));
  EXPECT_EQ(kinds,
            (std::vector<std::string>{"input", "convolution", "activation", "flatten", "dense", "softmax_loss"}));
  EXPECT_EQ(graph.nodes[1].name, "first");
  EXPECT_EQ(std::get<nn::Activation>(graph.nodes[2].layer).kind, nn::ActivationKind::silu);
  EXPECT_TRUE(std::get<nn::Dense>(graph.nodes[4].layer).bias);
  EXPECT_EQ(graph.classes(), 5);
}

TEST(OnnxNetwork, TurnsTheMatricesOfProducts) {
  const std::string file = small_model().file();
  const OnnxNetwork network = read_sketch(file);
  ASSERT_EQ(network.tensors.size(), 3u);
  EXPECT_EQ(network.tensors[1].name, "head");
  EXPECT_EQ(network.tensors[1].shape, (std::vector<std::int64_t>{5, 12}));
  std::vector<float> values(60);
  copy_values(network.tensors[1], values);
  EXPECT_EQ(values[1], 5);   // of the second input
  EXPECT_EQ(values[12], 1);  // of the second output
}

TEST(OnnxNetwork, NamesTheNodeOfAnOperatorThatNoLayerComputes) {
  const auto complaint = [](const char* op, const std::vector<ProtoMessage>& attributes = {}) {
    return [=] {
      Sketch model;
      const std::string file = model.tensor("w", {3, 32}).node(op, {"image"}, "a", attributes).file();
      read_sketch(file);
    };
  };
  expect_error<DataError>(complaint("Einsum"),
                          "m.onnx: node the_a (Einsum): dtrain has no layer for the operator Einsum");
  expect_error<DataError>(complaint("LeakyRelu"), "no layer for the operator LeakyRelu");
  expect_error<DataError>(complaint("MaxPool", {integers("kernel_shape", {2, 2}), integers("dilations", {2, 2})}),
                          "its window is dilated");
  expect_error<DataError>(complaint("AveragePool", {integers("kernel_shape", {2, 2}), integers("pads", {0, 0, 1, 1})}),
                          "its padding [0, 0, 1, 1] differs from side to side");
}

// The layer behind a Pad by one pixel, with `value` around what `before` makes of the image.
nn::Layer behind_pad(const char* before, float value, const char* op,
                     std::array<std::int64_t, 4> sides = {1, 1, 1, 1}) {
  const auto [above, left, below, right] = sides;
  Sketch model;
  if (before) model.node(before, {"image"}, "first");
  model.node("Pad", {before ? "first" : "image"}, "padded",
             {integers("pads", {0, 0, above, left, 0, 0, below, right}), real("value", value)});
  model.node(op, {"padded"}, "pooled", {integers("kernel_shape", {3, 3}), integers("strides", {2, 2})});
  model.tensor("w", {3, 8}).node("Flatten", {"pooled"}, "f").node("Gemm", {"f", "w"}, "g", {integer("transB", 1)});
  const std::string file = model.file();
  return read_sketch(file).graph.nodes[before ? 2 : 1].layer;
}

TEST(OnnxNetwork, PoolsWithThePaddingOfAPadWhereNoNumberChanges) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  for (const auto& [before, value] : {std::pair<const char*, float>{"Relu", 0}, {nullptr, kLeast}, {"Tanh", kLeast}}) {
    const auto layer = std::get<nn::Pooling>(behind_pad(before, value, "MaxPool"));
    EXPECT_EQ(layer.pad_h, 1);
    EXPECT_EQ(layer.pad_w, 1);
  }
  // Two more windows would read the zeros behind: those of a pooling that rounds up.
  const auto ceiled = std::get<nn::Pooling>(behind_pad("Relu", 0, "MaxPool", {0, 0, 1, 1}));
  EXPECT_EQ(ceiled.pad_h, 0);
  EXPECT_TRUE(ceiled.full);
  expect_error<DataError>([] { behind_pad(nullptr, 0, "MaxPool"); }, "zeros around its input count");
  expect_error<DataError>([] { behind_pad("Tanh", 0, "MaxPool"); }, "zeros around its input count");
  expect_error<DataError>([] { behind_pad("Relu", kLeast, "AveragePool"); },
                          "it averages an image with minus infinity");
  expect_error<DataError>([] { behind_pad("Relu", 1, "MaxPool"); }, "something else than zeros or minus infinity");
}

TEST(OnnxNetwork, RefusesToCutOrReshapeWhatAPadMadeLarger) {
  const auto complaint = [](const char* op, const std::vector<ProtoMessage>& attributes) {
    return [=] {
      Sketch model;
      model.node("Pad", {"image"}, "padded", {integers("pads", {0, 0, 0, 0, 0, 0, 1, 1})});
      model.node(op, {"padded"}, "cut", attributes).node("Shape", {"cut"}, "extents");
      const std::string file = model.node("Reshape", {"cut", "extents"}, "made").file();
      read_sketch(file);
    };
  };
  const char* const kRefusal = "a Pad made its input larger, which only convolutions and poolings read";
  expect_error<DataError>(complaint("Reshape", {integers("shape", {0, 0, -1})}), kRefusal);
  expect_error<DataError>(complaint("Flatten", {}), kRefusal);
  expect_error<DataError>(complaint("Transpose", {integers("perm", {0, 2, 3, 1})}), kRefusal);
  expect_error<DataError>(complaint("Unsqueeze", {integers("axes", {0})}), kRefusal);
  expect_error<DataError>(
      complaint("Slice", {integers("starts", {0, 0}), integers("ends", {4, 4}), integers("axes", {2, 3})}), kRefusal);
}

TEST(OnnxNetwork, TakesTheIndexOfAGatherFromItsInput) {
  Sketch model;
  model.whole("one", {}, {1}).tensor("w", {3, 16});
  model.node("Gather", {"image", "one"}, "a", {integer("axis", 1), integers("indices", {})});
  const std::string file =
      model.node("Flatten", {"a"}, "b").node("Gemm", {"b", "w"}, "c", {integer("transB", 1)}).file();
  expect_error<DataError>([&] { read_sketch(file); }, "channels of a layer");
}

TEST(OnnxNetwork, ReadsDilationsPaddingOfEachSideAndLocalResponseNorms) {
  Sketch model;
  model.tensor("w", {3, 2, 2, 2}).tensor("head", {3, 3 * 5 * 4});
  model.node("Conv", {"image", "w"}, "a", {integers("pads", {1, 0, 2, 2}), integers("dilations", {2, 2})});
  model.node("LRN", {"a"}, "b", {integer("size", 3), real("bias", 2)}).node("Flatten", {"b"}, "c");
  const std::string file = model.node("Gemm", {"c", "head"}, "d", {integer("transB", 1)}).file();
  const nn::Graph graph = read_sketch(file).graph;
  const auto& layer = std::get<nn::Convolution>(graph.nodes[1].layer);
  EXPECT_EQ(graph.nodes[1].output, (nn::Shape{3, 5, 4}));
  EXPECT_EQ(layer.dilation_h, 2);
  EXPECT_EQ((std::array{layer.pad_h, layer.pad_w, layer.extra_h, layer.extra_w}), (std::array{1, 0, 1, 2}));
  const auto& norm = std::get<nn::LocalResponseNorm>(graph.nodes[2].layer);
  EXPECT_EQ(norm.size, 3);
  EXPECT_EQ(norm.bias, 2);
  EXPECT_EQ(norm.beta, 0.75f);
  Sketch even;
  const std::string refused = even.node("LRN", {"image"}, "a", {integer("size", 4)}).file();
  expect_error<DataError>([&] { read_sketch(refused); }, "a size of 4 channels is not odd");
}

TEST(OnnxNetwork, HasNoLayerForAnAddedZero) {
  Sketch model;
  model.tensor("none", {}).tensor("w", {3, 32}).node("Add", {"none", "image"}, "a").node("Flatten", {"a"}, "b");
  const std::string file = model.node("Gemm", {"b", "w"}, "c", {integer("transB", 1)}).file();
  EXPECT_EQ(read_sketch(file).graph.nodes.size(), 4u);  // input, flatten, dense, loss
}

TEST(OnnxNetwork, RefusesTensorsThatDoNotFit) {
  Sketch model;
  model.tensor("w", {3, 5, 3, 3});
  const std::string convolution = model.node("Conv", {"image", "w"}, "a").file();
  expect_error<DataError>([&] { read_sketch(convolution); }, "its weight is [3, 5, 3, 3], not [3, 2, 3, 3]");
  Sketch other;
  const std::string product = other.tensor("w", {3, 31})
                                  .node("Flatten", {"image"}, "flat")
                                  .node("Gemm", {"flat", "w"}, "a", {integer("transB", 1)})
                                  .file();
  expect_error<DataError>([&] { read_sketch(product); }, "its weight takes 31 values, and its input has 32");
}

TEST(OnnxNetwork, TrainsOnOtherClassesAndSizes) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "m.onnx", small_model().file());
  const nn::Graph graph = network_of_onnx_model(folder / "m.onnx", {}, 4);
  EXPECT_EQ(graph.classes(), 4);
  const StartingWeights start = load_weights({.file = folder / "m.onnx", .seed = 1}, graph);
  EXPECT_EQ(start.fit.fitted, 1u);
  EXPECT_FALSE(start.fit.new_head.empty());
  EXPECT_EQ(start.checkpoint.state.parameters[5], 5);
  EXPECT_EQ(network_of_onnx_model(folder / "m.onnx", nn::Shape{2, 9, 9}).input(), (nn::Shape{2, 9, 9}));
  EXPECT_EQ(network_of_weights(folder / "m.onnx").value().name, (folder / "m.onnx").string());
}

TEST(OnnxNetwork, OfDtrainLeavesBehindWhatItsRunChose) {
  const TemporaryFolder folder;
  Checkpoint checkpoint = small_checkpoint();
  for (nn::Node& node : checkpoint.graph.nodes) node.learns = node.parameters.empty();
  nn::synchronize_norms(checkpoint.graph);
  nn::set_loss(checkpoint.graph, {.class_weights = {1, 2, 3}});
  export_onnx(checkpoint, folder / "m.onnx");
  const nn::Graph graph = network_of_onnx_model(folder / "m.onnx", {}, 5);
  EXPECT_EQ(graph.classes(), 5);
  EXPECT_TRUE(nn::loss_of(graph).class_weights.empty());
  EXPECT_EQ(nn::frozen_tensors(graph), 0);
  EXPECT_FALSE(nn::has_synchronized_norms(graph));
  EXPECT_EQ(nn::graph_to_json(import_onnx(folder / "m.onnx").graph), nn::graph_to_json(checkpoint.graph));
}

}  // namespace
}  // namespace dtrain::train
