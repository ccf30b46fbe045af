// One function for each operator of ONNX that computes numbers of numbers, and the table of all that are folded.
#include "onnx_fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include <dtrain/base/math.hpp>

#include "onnx_fold_moves.hpp"

namespace dtrain::train {
namespace {

using Numbers = OnnxNumbers;
using Inputs = OnnxFoldInputs;
using Shape = OnnxShape;

using Pair = double (*)(double, double);
using Single = double (*)(double);

double add(double a, double b) { return a + b; }
double subtract(double a, double b) { return a - b; }
double multiply(double a, double b) { return a * b; }
double divide(double a, double b) { return a / b; }
double least(double a, double b) { return std::min(a, b); }
double largest(double a, double b) { return std::max(a, b); }
double power(double a, double b) { return a > 0 ? portable_pow(a, b) : a == 0 && b > 0 ? 0.0 : NAN; }
double remainder_as_divisor(double a, double b) { return a - b * std::floor(a / b); }  // it has its sign
double remainder_as_divided(double a, double b) { return a - b * std::trunc(a / b); }
// 1 where they hold.
double equals(double a, double b) { return a == b ? 1 : 0; }
double is_less(double a, double b) { return a < b ? 1 : 0; }
double is_greater(double a, double b) { return a > b ? 1 : 0; }
double holds_both(double a, double b) { return a != 0 && b != 0 ? 1 : 0; }
double holds_one(double a, double b) { return a != 0 || b != 0 ? 1 : 0; }

double itself(double a) { return a; }
double negated(double a) { return -a; }
double inverted(double a) { return 1 / a; }
double holds_not(double a) { return a == 0 ? 1 : 0; }
double rounded_down(double a) { return std::floor(a); }
double rounded_up(double a) { return std::ceil(a); }

template <Pair compute>
Numbers fold_pair(const OnnxNode&, const Inputs& in) {
  const Shape shape = common_shape(in[0]->shape, in[1]->shape);
  Numbers made = broadcast_to(*in[0], shape);
  const Numbers right = broadcast_to(*in[1], shape);
  made.is_real = in[0]->is_real || in[1]->is_real;
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    OnnxNumber& number = made.values[i];
    number = {compute(number.value, right.values[i].value), number.of_samples || right.values[i].of_samples};
  }
  return made;
}

// Comparisons make whole numbers.
template <Pair compute>
Numbers fold_comparison(const OnnxNode& node, const Inputs& in) {
  Numbers made = fold_pair<compute>(node, in);
  made.is_real = false;
  return made;
}

// Whole numbers divide as in C.
Numbers fold_division(const OnnxNode& node, const Inputs& in) {
  const bool is_real = in[0]->is_real || in[1]->is_real;
  expect_fold(is_real || std::ranges::none_of(in[1]->values, [](const OnnxNumber& each) { return each.value == 0; }),
              "it divides by zero");
  Numbers made = fold_pair<divide>(node, in);
  if (!is_real) {
    for (OnnxNumber& number : made.values) number.value = std::trunc(number.value);
  }
  return made;
}

Numbers fold_remainder(const OnnxNode& node, const Inputs& in) {
  expect_fold(std::ranges::none_of(in[1]->values, [](const OnnxNumber& each) { return each.value == 0; }),
              "it divides by zero");
  return attribute_of(node, "fmod", 0) != 0 ? fold_pair<remainder_as_divided>(node, in)
                                            : fold_pair<remainder_as_divisor>(node, in);
}

template <Single compute>
Numbers fold_each(const OnnxNode&, const Inputs& in) {
  Numbers made = *in[0];
  for (OnnxNumber& number : made.values) number.value = compute(number.value);
  return made;
}

Numbers fold_clip(const OnnxNode& node, const Inputs& in) {
  Numbers made = *in[0];
  if (in.size() > 1 && in[1]) made = fold_pair<largest>(node, {&made, in[1]});
  if (in.size() > 2 && in[2]) made = fold_pair<least>(node, {&made, in[2]});
  return made;
}

Numbers fold_cast(const OnnxNode& node, const Inputs& in) {
  constexpr std::int64_t kFloat32 = 1, kBool = 9, kFloat16 = 10, kFloat64 = 11, kBfloat16 = 16;
  const std::int64_t to = attribute_of(node, "to", kFloat32);
  Numbers made = *in[0];
  made.is_real = to == kFloat32 || to == kFloat16 || to == kFloat64 || to == kBfloat16;
  if (made.is_real) return made;
  for (OnnxNumber& number : made.values) {
    number.value = to == kBool ? (number.value != 0 ? 1.0 : 0.0) : std::trunc(number.value);
  }
  return made;
}

Numbers fold_where(const OnnxNode&, const Inputs& in) {
  const Shape shape = common_shape(common_shape(in[0]->shape, in[1]->shape), in[2]->shape);
  const Numbers chosen = broadcast_to(*in[0], shape), others = broadcast_to(*in[2], shape);
  Numbers made = broadcast_to(*in[1], shape);
  made.is_real = in[1]->is_real || in[2]->is_real;
  for (std::size_t i = 0; i < made.values.size(); ++i) {
    if (chosen.values[i].value == 0) made.values[i] = others.values[i];
    made.values[i].of_samples |= chosen.values[i].of_samples;
  }
  return made;
}

Numbers fold_range(const OnnxNode&, const Inputs& in) {
  for (const Numbers* each : in) {
    expect_fold(each->values.size() == 1 && !each->of_samples(),
                "its bounds are no three numbers known before it runs");
  }
  const double first = in[0]->values[0].value, end = in[1]->values[0].value, step = in[2]->values[0].value;
  const double count = step == 0 ? -1 : std::max(0.0, std::ceil((end - first) / step));
  expect_fold(count >= 0 && count <= double(kMostOnnxNumbers),
              fmt::format("it counts from {} to {} by {}", first, end, step));
  Numbers made{{static_cast<std::int64_t>(count)}, {}, in[0]->is_real};
  for (std::int64_t i = 0; i < made.shape[0]; ++i) made.values.push_back({first + double(i) * step});
  return made;
}

template <Pair compute>
Numbers fold_all(const OnnxNode& node, const Inputs& in) {  // over all axes, as PyTorch writes the size of a tensor
  const Shape axes = known_integers(node, "axes", in, 1);
  expect_fold(!in[0]->values.empty() && (axes.empty() || axes.size() == in[0]->shape.size()),
              "it reduces some of the axes of numbers");
  OnnxNumber sum = in[0]->values[0];
  for (const OnnxNumber& each : std::span(in[0]->values).subspan(1))
    sum = {compute(sum.value, each.value), sum.of_samples || each.of_samples};
  const bool keeps = attribute_of(node, "keepdims", 1) != 0;
  return {Shape(keeps ? in[0]->shape.size() : 0, 1), {sum}, in[0]->is_real};
}

}  // namespace

const std::vector<OnnxFold>& onnx_folds() {
  static constexpr std::size_t kMany = kMostOnnxNumbers;
  static const std::vector<OnnxFold> kFolds = {{"Add", 2, 2, fold_pair<add>},
                                               {"And", 2, 2, fold_comparison<holds_both>},
                                               {"Cast", 1, 1, fold_cast},
                                               {"Ceil", 1, 1, fold_each<rounded_up>},
                                               {"Clip", 1, 3, fold_clip},
                                               {"Concat", 1, kMany, fold_concat},
                                               {"ConstantOfShape", 1, 1, fold_constant_of_shape},
                                               {"Div", 2, 2, fold_division},
                                               {"Equal", 2, 2, fold_comparison<equals>},
                                               {"Expand", 2, 2, fold_expand},
                                               {"Floor", 1, 1, fold_each<rounded_down>},
                                               {"Gather", 2, 2, fold_gather},
                                               {"Greater", 2, 2, fold_comparison<is_greater>},
                                               {"Identity", 1, 1, fold_each<itself>},
                                               {"Less", 2, 2, fold_comparison<is_less>},
                                               {"Max", 2, 2, fold_pair<largest>},
                                               {"Min", 2, 2, fold_pair<least>},
                                               {"Mod", 2, 2, fold_remainder},
                                               {"Mul", 2, 2, fold_pair<multiply>},
                                               {"Neg", 1, 1, fold_each<negated>},
                                               {"Not", 1, 1, fold_each<holds_not>},
                                               {"Or", 2, 2, fold_comparison<holds_one>},
                                               {"Pow", 2, 2, fold_pair<power>},
                                               {"Range", 3, 3, fold_range},
                                               {"Reciprocal", 1, 1, fold_each<inverted>},
                                               {"ReduceProd", 1, 2, fold_all<multiply>},
                                               {"ReduceSum", 1, 2, fold_all<add>},
                                               {"Reshape", 1, 2, fold_reshape},
                                               {"Shape", 1, 1, fold_shape},
                                               {"Size", 1, 1, fold_size},
                                               {"Slice", 1, 5, fold_slice},
                                               {"Sqrt", 1, 1, fold_each<portable_sqrt>},
                                               {"Squeeze", 1, 2, fold_squeeze},
                                               {"Sub", 2, 2, fold_pair<subtract>},
                                               {"Transpose", 1, 1, fold_transpose},
                                               {"Unsqueeze", 1, 2, fold_unsqueeze},
                                               {"Where", 3, 3, fold_where}};
  return kFolds;
}

const OnnxFold* find_onnx_fold(const OnnxNode& node) {
  const std::vector<OnnxFold>& folds = onnx_folds();
  const auto found = std::ranges::find_if(folds, [&](const OnnxFold& each) { return node.op == each.name; });
  return found == folds.end() ? nullptr : &*found;
}

OnnxNumbers fold_onnx_node(const OnnxFold& fold, const OnnxNode& node, const OnnxFoldInputs& inputs) {
  expect_fold(inputs.size() >= fold.least && inputs.size() <= fold.most,
              fmt::format("it has {} inputs", inputs.size()));
  const auto needed = std::span(inputs).first(std::max(fold.least, node.op == "Concat" ? inputs.size() : 0));
  expect_fold(std::ranges::find(needed, nullptr) == needed.end(), "one of its inputs is left out");
  return fold.fold(node, inputs);
}

}  // namespace dtrain::train
