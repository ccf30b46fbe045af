// Operators that mean something else than the layer that is nearest to them.
#include <gtest/gtest.h>

#include <dtrain/train/weights.hpp>

#include "data/temporary_folder.hpp"
#include "train/weights/onnx_sketch.hpp"

namespace dtrain::train {
namespace {

using namespace onnx;
using data::expect_error;

enum ElementType { kFloat32 = 1, kInt8 = 3, kInt32 = 6, kFloat16 = 10, kFloat64 = 11 };
enum TensorData { kInt32Data = 5, kDoubleData = 10 };

ProtoMessage words(const char* name, const char* text) {
  constexpr int kText = 4;
  return ProtoMessage().text(attribute_name, name).text(kText, text);
}

// A head of three classes behind a value of so many numbers.
Sketch& add_head(Sketch& model, const char* value, std::int64_t numbers) {
  model.tensor("head", {3, numbers}).node("Flatten", {value}, "flat");
  return model.node("Gemm", {"flat", "head"}, "classes", {integer("transB", 1)});
}
std::string with_head(Sketch& model, const char* value, std::int64_t numbers) {
  return add_head(model, value, numbers).file();
}

void expect_refused(const std::string& file, std::string_view why) {
  expect_error<DataError>([&] { read_sketch(file); }, why);
}

TEST(OnnxMeaning, OfACastToWholeNumbersIsNoLayer) {
  const auto cast_to = [](int type) {
    Sketch model;
    model.node("Cast", {"image"}, "a", {integer("to", type)});
    return with_head(model, "a", 32);
  };
  EXPECT_EQ(read_sketch(cast_to(kFloat16)).graph.nodes.size(), 4u);
  EXPECT_EQ(read_sketch(cast_to(kFloat64)).graph.nodes.size(), 4u);
  expect_refused(cast_to(kInt32), "node the_a (Cast): it makes numbers of INT32");
  Sketch weight;
  weight.tensor("w", {3, 2, 1, 1}).node("Cast", {"w"}, "whole", {integer("to", kInt32)});
  expect_refused(
      weight.node("Cast", {"whole"}, "real", {integer("to", kFloat32)}).node("Conv", {"image", "real"}, "a").file(),
      "INT32");
}

TEST(OnnxMeaning, OfAMeanWithoutAxesIsTheMeanOfAll) {
  const auto mean = [](const std::vector<ProtoMessage>& attributes) {
    Sketch model;
    model.node("ReduceMean", {"image"}, "a", attributes);
    return with_head(model, "a", 32);
  };
  expect_refused(mean({}), "node the_a (ReduceMean): it names no axes");
  EXPECT_EQ(read_sketch(mean({integer("noop_with_empty_axes", 1)})).graph.nodes.size(), 4u);
}

TEST(OnnxMeaning, OfAListOfFactorsIsThatOfColumns) {
  const auto product = [](bool as_list) {
    Sketch model;
    model.tensor("w", {4, 2, 1, 1}).node("Conv", {"image", "w"}, "wide");
    model.node("GlobalAveragePool", {"wide"}, "means").node("Flatten", {"means"}, "list");
    model.node("Mul", {"wide", as_list ? "list" : "means"}, "a");
    return with_head(model, "a", 64);
  };
  EXPECT_EQ(read_sketch(product(false)).graph.classes(), 3);
  expect_refused(product(true), "node the_a (Mul): its factors [");
}

TEST(OnnxMeaning, OfAProductIsThatOfAFactorForEachChannel) {
  Sketch model;
  model.node("Mul", {"image", "image"}, "a");
  expect_refused(with_head(model, "a", 32), "node the_a (Mul): dtrain has no product of two layers");
}

TEST(OnnxMeaning, OfAFreeNumberOfSamplesIsN) {
  Sketch model;
  model.tensor("head", {32, 3}).tensor("shift", {3}).node("Flatten", {"image"}, "list");
  model.node("MatMul", {"list", "head"}, "product").node("Add", {"product", "shift"}, "biased");
  model.node("Add", {"biased", "shift"}, "a");
  expect_refused(model.file(), "node the_a (Add): dtrain has no layer that adds [3] to [n, 3] here");
}

// x (1 + factor erf(x / sqrt 2)) / 2.
std::string error_curve(float factor) {
  Sketch model;
  const auto number = [&](const char* name, float value) {
    model.initializer(tensor_message(name, {}, float32)
                          .text(raw_data, std::string(text_of(std::as_bytes(std::span<const float>(&value, 1))))));
  };
  number("root", 0.70710678f);
  number("factor", factor);
  number("one", 1);
  number("half", 0.5f);
  model.node("Mul", {"image", "root"}, "scaled").node("Erf", {"scaled"}, "erf").node("Mul", {"erf", "factor"}, "part");
  model.node("Add", {"part", "one"}, "sum").node("Mul", {"image", "sum"}, "twice").node("Mul", {"twice", "half"}, "a");
  return with_head(model, "a", 32);
}

TEST(OnnxMeaning, OfHalfAnErrorFunctionIsNoGelu) {
  const nn::Graph graph = read_sketch(error_curve(1)).graph;
  EXPECT_EQ(std::get<nn::Activation>(graph.nodes[1].layer).kind, nn::ActivationKind::gelu);
  expect_refused(error_curve(0.5f), "it adds 1 to an error function times 0.5");
}

// Three classes with these axes, and what stands behind them.
struct Ending {
  std::vector<std::int64_t> axes = {1, 3};
  const char* op = "Softmax";
  std::vector<ProtoMessage> attributes = {};
  int operator_set = 13;
};

std::string ended(const Ending& end, const char* behind = nullptr, const std::vector<ProtoMessage>& attributes = {}) {
  Sketch model;
  add_head(model, "image", 32);
  model.operator_set(end.operator_set).whole("axes", {std::ssize(end.axes)}, end.axes);
  model.node("Reshape", {"classes", "axes"}, "shaped").node(end.op, {"shaped"}, "shares", end.attributes);
  if (behind) model.node(behind, {"shares"}, "end", attributes);
  return model.file();
}

TEST(OnnxMeaning, OfASoftmaxIsThatOfItsAxis) {
  const std::vector<std::int64_t> list = {-1, 3}, image = {-1, 3, 1, 1};
  for (const Ending& end :
       {Ending{list}, Ending{list, "Softmax", {integer("axis", 1)}}, Ending{image, "Softmax", {integer("axis", 1)}},
        Ending{list, "Softmax", {}, 11}, Ending{image, "Softmax", {}, 11},
        Ending{image, "Softmax", {integer("axis", -3)}, 11}, Ending{list, "LogSoftmax", {integer("axis", -1)}}}) {
    EXPECT_EQ(read_sketch(ended(end)).graph.nodes.size(), 4u);
  }
  expect_refused(ended({list, "Softmax", {integer("axis", 0)}}), "its axis 0 is not that of the classes");
  expect_refused(ended({list, "LogSoftmax", {integer("axis", 0)}}), "its axis 0 is not that of the classes");
  expect_refused(ended({image}), "its axis 3 is not that of the classes");
  expect_refused(ended({image, "Softmax", {integer("axis", 2)}, 11}), "its axis 2 is not that of the classes");
}

TEST(OnnxMeaning, OfASoftmaxBeforeMovesAloneIsTheEnd) {
  const std::vector<std::int64_t> image = {-1, 3, 1, 1};
  const std::vector<ProtoMessage> channels = {integer("axis", 1)};
  for (const char* const op : {"Softmax", "LogSoftmax"}) {
    EXPECT_EQ(read_sketch(ended({image, op, channels}, "Identity")).graph.nodes.size(), 4u);
    EXPECT_EQ(read_sketch(ended({image, op, channels}, "Flatten")).graph.nodes.size(), 4u);
    EXPECT_EQ(read_sketch(ended({image, op, channels}, "Squeeze", {integers("axes", {2, 3})})).graph.nodes.size(), 4u);
    EXPECT_EQ(read_sketch(ended({image, op, channels}, "Cast", {integer("to", kFloat16)})).graph.nodes.size(), 4u);
  }
  expect_refused(ended({image, "Softmax", channels}, "Relu"), "at the end of a network only");
  expect_refused(ended({image, "Softmax", channels}, "Cast", {integer("to", kInt32)}), "INT32");
}

nn::LossKind loss_of(const std::string& file) { return nn::loss_of(read_sketch(file).graph).kind; }

TEST(OnnxMeaning, OfASigmoidAtTheEndIsAProbabilityOfEachClass) {
  const std::vector<std::int64_t> list = {-1, 3}, image = {-1, 3, 1, 1};
  for (const std::string& file : {ended({list, "Sigmoid"}), ended({image, "Sigmoid"}, "Flatten"),
                                  ended({list, "Sigmoid"}, "Cast", {integer("to", kFloat16)})}) {
    EXPECT_EQ(read_sketch(file).graph.nodes.size(), 4u);  // input, flatten, dense, loss
    EXPECT_EQ(loss_of(file), nn::LossKind::sigmoid);
  }
  EXPECT_EQ(loss_of(ended({list})), nn::LossKind::softmax);
  const std::string hidden = ended({list, "Sigmoid"}, "Relu");
  EXPECT_EQ(read_sketch(hidden).graph.nodes.size(), 6u);
  EXPECT_EQ(loss_of(hidden), nn::LossKind::softmax);
}

TEST(OnnxMeaning, OfASigmoidOfOneNumberIsNoClassifier) {
  Sketch model;
  model.tensor("head", {1, 32}).node("Flatten", {"image"}, "flat");
  model.node("Gemm", {"flat", "head"}, "one", {integer("transB", 1)}).node("Sigmoid", {"one"}, "share");
  expect_refused(model.file(), "node the_share (Sigmoid): it ends in a sigmoid of one number");
}

TEST(OnnxMeaning, OfPaddingToTheSameSizeDependsOnTheImage) {
  const TemporaryFolder folder;
  Sketch model;
  model.tensor("w", {5, 2, 3, 3})
      .node("Conv", {"image", "w"}, "a", {integers("strides", {2, 2}), words("auto_pad", "SAME_UPPER")});
  model.node("GlobalAveragePool", {"a"}, "means");
  write_file_atomic(folder / "m.onnx", with_head(model, "means", 5));
  const auto pads = [&](std::optional<nn::Shape> image) {
    const nn::Graph graph = network_of_onnx_model(folder / "m.onnx", image);
    const auto& layer = std::get<nn::Convolution>(graph.nodes[1].layer);
    return std::array{layer.pad_h, layer.pad_w, layer.extra_h, layer.extra_w};
  };
  EXPECT_EQ(pads({}), (std::array{0, 0, 1, 1}));
  EXPECT_EQ(pads(nn::Shape{2, 9, 9}), (std::array{1, 1, 0, 0}));
}

TEST(OnnxMeaning, OfImagesOfAnotherSizeKeepsWhatFits) {
  const TemporaryFolder folder;
  Sketch model;
  model.tensor("w", {5, 2, 1, 1}).tensor("turned", {80, 3}).node("Conv", {"image", "w"}, "a");
  model.node("Flatten", {"a"}, "flat").node("MatMul", {"flat", "turned"}, "classes");
  write_file_atomic(folder / "m.onnx", model.file());
  const nn::Graph graph = network_of_onnx_model(folder / "m.onnx", nn::Shape{2, 6, 6});
  const StartingWeights start = load_weights({.file = folder / "m.onnx", .seed = 1}, graph);
  EXPECT_EQ(start.fit.fitted, 1u);
  EXPECT_TRUE(start.fit.new_head.ends_with(" [3, 180]: [3, 80] in the file")) << start.fit.new_head;
}

TEST(OnnxMeaning, OfNumbersIsTheSameInEveryField) {
  const std::vector<float> expected = {1, -2, 0.5f, 0, 3, 4};
  const std::vector<std::int64_t> halves = {0x3c00, 0xc000, 0x3800, 0, 0x4200, 0x4400};
  ProtoMessage half = tensor_message("w", std::vector<std::int64_t>{3, 2, 1, 1}, DataType(kFloat16));
  for (const std::int64_t bits : halves) half.integer(kInt32Data, bits);
  const std::vector<double> doubles(expected.begin(), expected.end());
  ProtoMessage wide = tensor_message("w", std::vector<std::int64_t>{3, 2, 1, 1}, DataType(kFloat64));
  wide.text(kDoubleData, std::string(text_of(std::as_bytes(std::span(doubles)))));
  for (const ProtoMessage& tensor : {half, wide}) {
    Sketch model;
    model.initializer(tensor).node("Conv", {"image", "w"}, "a");
    const std::string file = with_head(model, "a", 48);
    const OnnxNetwork network = read_sketch(file);
    std::vector<float> values(expected.size());
    copy_values(network.tensors.front(), values);
    EXPECT_EQ(values, expected);
  }
}

TEST(OnnxMeaning, OfAQuantisedWeightIsNamed) {
  Sketch model;
  model.initializer(tensor_message("wi", std::vector<std::int64_t>{3, 2, 8, 8}, DataType(kInt8))
                        .text(raw_data, std::string(384, '\1')));
  model.node("Cast", {"wi"}, "w", {integer("to", kFloat32)}).node("Conv", {"image", "w"}, "a");
  expect_refused(model.file(), "node the_w (Cast): its input wi is a tensor of whole numbers");
  Sketch computed;
  computed.tensor("v", {3, 2, 2, 2}).node("Relu", {"v"}, "w").node("Conv", {"image", "w"}, "a");
  expect_refused(computed.file(), "it computes a weight from the tensor v | compute the weights");
}

}  // namespace
}  // namespace dtrain::train
