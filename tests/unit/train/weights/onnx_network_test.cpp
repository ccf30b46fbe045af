#include "weights/onnx_network.hpp"

#include <gtest/gtest.h>

#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "data/temporary_folder.hpp"
#include "export/onnx_messages.hpp"

namespace dtrain::train {
namespace {

using namespace onnx;
using data::expect_error;

// A model of 2x4x4 images; nodes are added in order, each with the output that stands behind its inputs.
class Sketch {
 public:
  Sketch& node(const char* op, const std::vector<std::string>& values, const std::string& made,
               const std::vector<ProtoMessage>& attributes = {}) {
    ProtoMessage each;
    for (const std::string& value : values) each.text(node_input, value);
    each.text(node_output, made).text(node_name, "the_" + made).text(op_type, op);
    for (const ProtoMessage& item : attributes) each.message(attribute, item);
    graph_.message(GraphField::node, each);
    last_ = made;
    return *this;
  }
  // Values 0, 1, 2, ...
  Sketch& tensor(const char* name, const std::vector<std::int64_t>& extents) {
    std::int64_t size = 1;
    for (const std::int64_t extent : extents) size *= extent;
    std::vector<float> values;
    for (std::int64_t i = 0; i < size; ++i) values.push_back(static_cast<float>(i));
    graph_.message(
        initializer,
        tensor_message(name, extents, float32).text(raw_data, std::string(text_of(std::as_bytes(std::span(values))))));
    return *this;
  }
  std::string file() {
    ProtoMessage whole;
    graph_.message(input, value_info("image", {2, 4, 4})).message(output, value_info(last_, {3}));
    whole.message(Model::graph, graph_);
    std::string text;
    whole.for_each_piece([&](ByteView piece) { text += text_of(piece); });
    return text;
  }

 private:
  ProtoMessage graph_;
  std::string last_;
};

OnnxNetwork read(const std::string& file) {
  return network_of_onnx(parse_onnx_file(bytes_of(file), "m.onnx"), "m.onnx");
}

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
  const nn::Graph graph = read(file).graph;
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
  const OnnxNetwork network = read(file);
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
      read(file);
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

TEST(OnnxNetwork, RefusesTensorsThatDoNotFit) {
  Sketch model;
  model.tensor("w", {3, 5, 3, 3});
  const std::string convolution = model.node("Conv", {"image", "w"}, "a").file();
  expect_error<DataError>([&] { read(convolution); }, "its weight is [3, 5, 3, 3], not [3, 2, 3, 3]");
  Sketch other;
  const std::string product = other.tensor("w", {3, 31})
                                  .node("Flatten", {"image"}, "flat")
                                  .node("Gemm", {"flat", "w"}, "a", {integer("transB", 1)})
                                  .file();
  expect_error<DataError>([&] { read(product); }, "its weight takes 31 values, and its input has 32");
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

}  // namespace
}  // namespace dtrain::train
