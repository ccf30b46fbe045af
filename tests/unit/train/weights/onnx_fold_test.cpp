#include "weights/onnx_fold.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "data/temporary_folder.hpp"
#include "train/weights/onnx_sketch.hpp"

namespace dtrain::train {
namespace {

using namespace onnx;
using data::expect_error;
using Shape = std::vector<std::int64_t>;

OnnxNumbers list(const Shape& values) { return whole_numbers({std::ssize(values)}, values); }
OnnxNumbers tensor(const Shape& shape, const Shape& values) { return whole_numbers(shape, values); }
OnnxNumbers one(std::int64_t value) { return whole_numbers({}, Shape{value}); }

struct Attributes {
  std::map<std::string, std::int64_t> whole{};
  std::map<std::string, Shape> lists{};
};

OnnxNumbers fold(const char* op, const std::vector<OnnxNumbers>& inputs, const Attributes& attributes = {}) {
  OnnxNode node;
  node.op = op;
  for (const auto& [name, value] : attributes.whole) node.attributes[name].integer = value;
  for (const auto& [name, value] : attributes.lists) node.attributes[name].integers = value;
  OnnxFoldInputs given;
  for (const OnnxNumbers& each : inputs) given.push_back(&each);
  return fold_onnx_node(*find_onnx_fold(node), node, given);
}

void expect_numbers(const OnnxNumbers& made, const Shape& shape, const Shape& values) {
  EXPECT_EQ(made.shape, shape);
  EXPECT_EQ(made.integers(), values);
}

const OnnxNumbers kTable = tensor({2, 3}, {0, 1, 2, 10, 11, 12});

TEST(OnnxFold, MovesNumbersAlongAnyAxis) {
  expect_numbers(fold("Transpose", {kTable}), {3, 2}, {0, 10, 1, 11, 2, 12});
  expect_numbers(fold("Transpose", {kTable}, {.lists = {{"perm", {0, 1}}}}), {2, 3}, {0, 1, 2, 10, 11, 12});
  expect_numbers(fold("Gather", {kTable, list({-1, 0})}, {.whole = {{"axis", 1}}}), {2, 2}, {2, 0, 12, 10});
  expect_numbers(fold("Gather", {kTable, one(1)}), {3}, {10, 11, 12});
  expect_numbers(fold("Gather", {kTable, tensor({2, 1}, {2, 1})}, {.whole = {{"axis", 1}}}), {2, 2, 1}, {2, 1, 12, 11});
  expect_numbers(fold("Concat", {kTable, tensor({2, 1}, {7, 8})}, {.whole = {{"axis", -1}}}), {2, 4},
                 {0, 1, 2, 7, 10, 11, 12, 8});
  expect_numbers(fold("Concat", {kTable, tensor({1, 3}, {7, 8, 9})}), {3, 3}, {0, 1, 2, 10, 11, 12, 7, 8, 9});
  expect_numbers(fold("Reshape", {kTable, list({3, -1})}), {3, 2}, {0, 1, 2, 10, 11, 12});
  expect_numbers(fold("Reshape", {kTable, list({0, 1, 3})}), {2, 1, 3}, {0, 1, 2, 10, 11, 12});
  expect_numbers(fold("Unsqueeze", {one(4), list({0})}), {1}, {4});
  expect_numbers(fold("Unsqueeze", {list({1, 2})}, {.lists = {{"axes", {1, -1}}}}), {2, 1, 1}, {1, 2});
  expect_numbers(fold("Squeeze", {tensor({1, 2, 1}, {1, 2}), list({2})}), {1, 2}, {1, 2});
  expect_numbers(fold("Squeeze", {tensor({1, 2, 1}, {1, 2})}), {2}, {1, 2});
  expect_numbers(fold("Expand", {tensor({2, 1}, {5, 6}), list({2})}), {2, 2}, {5, 5, 6, 6});
}

TEST(OnnxFold, SlicesBackwardsAndByLargerSteps) {
  const Shape counted = {0, 1, 2, 3, 4, 5};
  const OnnxNumbers from = list(counted);
  const auto part = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return fold("Slice", {from, list({start}), list({end}), list({0}), list({step})}).integers();
  };
  EXPECT_EQ(part(-1, INT64_MIN, -1), (Shape{5, 4, 3, 2, 1, 0}));  // as PyTorch turns the widths of F.pad around
  EXPECT_EQ(part(4, 0, -2), (Shape{4, 2}));
  EXPECT_EQ(part(1, 100, 2), (Shape{1, 3, 5}));
  EXPECT_EQ(part(-2, INT64_MAX, 1), (Shape{4, 5}));
  EXPECT_EQ(part(3, 3, 1), Shape());
  EXPECT_EQ(part(5, 2, 1), Shape());
  expect_numbers(fold("Slice", {kTable, list({1, 0}), list({2, -1})}), {1, 2}, {10, 11});
}

TEST(OnnxFold, ComputesAsNumPyBroadcasts) {
  expect_numbers(fold("Add", {kTable, list({1, 2, 3})}), {2, 3}, {1, 3, 5, 11, 13, 15});
  expect_numbers(fold("Sub", {one(1), tensor({2, 1}, {3, 4})}), {2, 1}, {-2, -3});
  expect_numbers(fold("Div", {list({7, -7}), one(2)}), {2}, {3, -3});
  expect_numbers(fold("Mod", {list({7, -7}), one(3)}), {2}, {1, 2});
  expect_numbers(fold("Mod", {list({7, -7}), one(3)}, {.whole = {{"fmod", 1}}}), {2}, {1, -1});
  expect_numbers(fold("Clip", {list({-3, 0, 9}), one(0), one(5)}), {3}, {0, 0, 5});
  expect_numbers(fold("Equal", {list({1, -1}), one(-1)}), {2}, {0, 1});
  expect_numbers(fold("Where", {list({1, 0}), list({5, 6}), one(9)}), {2}, {5, 9});
  expect_numbers(fold("Range", {one(2), one(9), one(3)}), {3}, {2, 5, 8});
  expect_numbers(fold("Shape", {kTable}, {.whole = {{"start", -1}}}), {1}, {3});
  expect_numbers(fold("Size", {kTable}), {}, {6});
  expect_numbers(fold("ReduceProd", {list({2, 3, 4})}, {.whole = {{"keepdims", 0}}}), {}, {24});
  expect_numbers(fold("ConstantOfShape", {list({2, 2})}, {.whole = {{"value", 3}}}), {2, 2}, {3, 3, 3, 3});
  expect_numbers(fold("Cast", {list({2, 0})}, {.whole = {{"to", 9}}}), {2}, {1, 0});
}

TEST(OnnxFold, RepeatsARealNumber) {
  constexpr int kTensor = 5;
  const std::vector<float> half = {0.5f};
  const ProtoMessage number = tensor_message("", std::vector<std::int64_t>{1}, float32)
                                  .text(raw_data, std::string(text_of(std::as_bytes(std::span(half)))));
  Sketch model;
  model.node("ConstantOfShape", {"two"}, "a", {ProtoMessage().text(attribute_name, "value").message(kTensor, number)});
  const std::string file = model.file();
  const OnnxFile onnx = parse_onnx_file(bytes_of(file), "m.onnx");
  const OnnxNumbers two = list({2});
  const OnnxNode& node = onnx.nodes.front();
  const OnnxNumbers made = fold_onnx_node(*find_onnx_fold(node), node, {&two});
  EXPECT_TRUE(made.is_real);
  EXPECT_EQ(made.values, (std::vector<OnnxNumber>{{0.5, false}, {0.5, false}}));
  EXPECT_TRUE(fold("ConstantOfShape", {two}).is_real) << "zeros are real where no number is given";
  const OnnxNumbers cast = fold("Cast", {made}, {.whole = {{"to", 16}}});  // BFLOAT16
  EXPECT_TRUE(cast.is_real);
  EXPECT_EQ(cast.values, made.values);
}

TEST(OnnxFold, RefusesWhatHasNoAnswer) {
  const auto refuses = [](const char* what, const char* op, const std::vector<OnnxNumbers>& inputs,
                          const Attributes& attributes = {}) {
    expect_error<UsageError>([&] { fold(op, inputs, attributes); }, what);
  };
  refuses("its index 3 is none of 3", "Gather", {list({1, 2, 3}), one(3)});
  refuses("it has no axis 1", "Gather", {list({1, 2, 3}), one(0)}, {.whole = {{"axis", 1}}});
  refuses("[2] and [3] do not fit", "Add", {list({1, 2}), list({1, 2, 3})});
  refuses("it divides by zero", "Div", {list({1}), list({0})});
  refuses("it makes [4] of [2, 3]", "Reshape", {kTable, list({4})});
  refuses("it joins tensors of other axes", "Concat", {kTable, list({1})});
  refuses("its step is 0", "Slice", {list({1}), list({0}), list({1}), list({0}), list({0})});
  refuses("it names an axis twice", "Transpose", {kTable}, {.lists = {{"perm", {1, 1}}}});
  refuses("at most 64 numbers", "ConstantOfShape", {list({1000, 1000})});
  refuses("at most 64 numbers", "ConstantOfShape", {list({INT64_MAX, INT64_MAX})});
  refuses("it counts from 0 to 100000 by 1", "Range", {one(0), one(100000), one(1)});
  refuses("it has 1 inputs", "Add", {one(1)});
}

TEST(OnnxFold, KnowsWhichNumbersTheSamplesDecide) {
  OnnxNumbers extents = list({7919, 3, 4, 4});
  extents.values[0].of_samples = true;
  EXPECT_TRUE(fold("Gather", {extents, one(0)}).of_samples());
  EXPECT_FALSE(fold("Gather", {extents, one(1)}).of_samples());
  EXPECT_FALSE(fold("Slice", {extents, list({2}), list({4})}).of_samples());
  EXPECT_TRUE(fold("Mul", {fold("Gather", {extents, one(0)}), one(2)}).of_samples());
  EXPECT_TRUE(fold("Where", {extents, one(1), one(2)}).values[0].of_samples);
  EXPECT_FALSE(fold("Where", {extents, one(1), one(2)}).values[1].of_samples);
  expect_error<UsageError>([&] { fold("ConstantOfShape", {extents}); }, "its shape depend on the number of samples");
}

// What PyTorch writes for F.pad(x, widths), whose other axes it leaves to the run, in front of a convolution of 3x3.
Sketch padded_model(const std::vector<std::int64_t>& widths) {
  Sketch model;
  model.tensor("w", {3, 2, 3, 3}).whole("widths", {4}, widths).whole("four", {1}, {4}).whole("rank", {1}, {4});
  model.whole("twice", {1}, {2}).whole("pairs", {2}, {-1, 2}).whole("all", {1}, {-1}).whole("zero", {1}, {0});
  model.whole("last", {1}, {-1}).whole("before", {1}, {INT64_MIN + 1}).whole("back", {1}, {-1});
  model.node("Mul", {"rank", "twice"}, "count").node("Sub", {"count", "four"}, "missing");
  model.node("ConstantOfShape", {"missing"}, "zeros")
      .node("Concat", {"widths", "zeros"}, "listed", {integer("axis", 0)});
  model.node("Reshape", {"listed", "pairs"}, "rows");
  model.node("Slice", {"rows", "last", "before", "zero", "back"}, "turned");
  model.node("Transpose", {"turned"}, "columns", {integers("perm", {1, 0})});
  model.node("Reshape", {"columns", "all"}, "flat").node("Cast", {"flat"}, "pads", {integer("to", 7)});
  return model;
}

TEST(OnnxFold, PadsByWidthsThatTheModelComputes) {
  Sketch model = padded_model({1, 2, 0, 1});  // left, right, above, below
  model.node("Pad", {"image", "pads"}, "padded").node("Conv", {"padded", "w"}, "a");
  model.node("Shape", {"padded"}, "extents").whole("two", {}, {2}).node("Gather", {"extents", "two"}, "rows_padded");
  model.node("Shape", {"a"}, "shape").whole("none", {}, {0}).node("Gather", {"shape", "none"}, "samples");
  model.node("Unsqueeze", {"samples"}, "first", {integers("axes", {0})});
  model.node("Concat", {"first", "all"}, "target", {integer("axis", 0)}).node("Reshape", {"a", "target"}, "list");
  const std::string file = model.tensor("head", {45, 5}).node("MatMul", {"list", "head"}, "out").file();
  const nn::Graph graph = read_sketch(file).graph;
  const auto& layer = std::get<nn::Convolution>(graph.nodes[1].layer);
  EXPECT_EQ(graph.nodes[1].output, (nn::Shape{3, 3, 5}));
  EXPECT_EQ((std::array{layer.pad_h, layer.pad_w, layer.extra_h, layer.extra_w}), (std::array{0, 1, 1, 1}));
}

// A Shape behind a Pad counts the zeros: the kernel of this pooling is a row of the padded image.
TEST(OnnxFold, CountsTheZerosOfAPadAmongTheExtents) {
  Sketch model = padded_model({1, 1, 1, 1});
  model.node("Pad", {"image", "pads"}, "padded").node("Shape", {"padded"}, "extents");
  model.whole("two", {1}, {2}).node("Gather", {"extents", "two"}, "height");
  model.whole("six", {1}, {6}).node("Sub", {"height", "six"}, "none").whole("rest", {7}, {0, 0, 0, 0, 0, 0, 0});
  model.node("Concat", {"none", "rest"}, "nothing", {integer("axis", 0)}).node("Conv", {"padded", "w"}, "a");
  model.node("Pad", {"a", "nothing"}, "b").node("Flatten", {"b"}, "c").tensor("head", {48, 5});
  const std::string file = model.node("MatMul", {"c", "head"}, "out").file();
  EXPECT_EQ(read_sketch(file).graph.classes(), 5);
}

TEST(OnnxFold, NamesTheNodeWhoseNumbersTheSamplesDecide) {
  Sketch model = padded_model({1, 1, 1, 1});
  model.node("Shape", {"image"}, "extents").whole("none", {1}, {0}).node("Gather", {"extents", "none"}, "samples");
  model.node("Mul", {"pads", "samples"}, "more").node("Pad", {"image", "more"}, "padded");
  const std::string file = model.node("Conv", {"padded", "w"}, "a").file();
  expect_error<DataError>(
      [&] { read_sketch(file); },
      "m.onnx: node the_padded (Pad): its pads depend on the number of samples, which the model leaves free");
  Sketch other;
  other.whole("five", {}, {5}).node("Shape", {"image"}, "extents").node("Gather", {"extents", "five"}, "fifth");
  const std::string beyond = other.node("Reshape", {"image", "fifth"}, "out").file();
  expect_error<DataError>([&] { read_sketch(beyond); }, "m.onnx: node the_fifth (Gather): its index 5 is none of 4");
}

}  // namespace
}  // namespace dtrain::train
