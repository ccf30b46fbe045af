#include "onnx_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <dtrain/base/math.hpp>

namespace dtrain::train {
namespace {

using Numbers = OnnxNumbers;
using Result = std::optional<Numbers>;

// Of an operator with two inputs: lists of one length, or a list and a number.
Result combine(const std::vector<Numbers>& in, double (*compute)(double, double), bool divides = false) {
  if (in.size() != 2) return std::nullopt;
  const std::size_t a = in[0].values.size(), b = in[1].values.size();
  if (a == 0 || b == 0 || (a != b && a != 1 && b != 1)) return std::nullopt;
  const bool real = in[0].is_real || in[1].is_real;
  Numbers made{a >= b ? in[0].shape : in[1].shape, {}, real};
  for (std::size_t i = 0; i < std::max(a, b); ++i) {
    const double right = in[1].values[b == 1 ? 0 : i];
    if (divides && !real && right == 0) return std::nullopt;
    const double value = compute(in[0].values[a == 1 ? 0 : i], right);
    made.values.push_back(divides && !real ? std::trunc(value) : value);
  }
  return made;
}

Result map_each(const std::vector<Numbers>& in, double (*compute)(double)) {
  if (in.size() != 1) return std::nullopt;
  Numbers made = in[0];
  for (double& value : made.values) value = compute(value);
  return made;
}

std::int64_t whole_attribute(const OnnxNode& node, const char* attribute, std::int64_t usual) {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? usual : found->second.integer;
}

Result cast_numbers(const OnnxNode& node, const std::vector<Numbers>& in) {
  constexpr std::int64_t kFloat32 = 1, kFloat16 = 10, kFloat64 = 11;
  if (in.size() != 1) return std::nullopt;
  const std::int64_t to = whole_attribute(node, "to", kFloat32);
  Numbers made = in[0];
  made.is_real = to == kFloat32 || to == kFloat16 || to == kFloat64;
  if (!made.is_real)
    std::ranges::transform(made.values, made.values.begin(), [](double value) { return std::trunc(value); });
  return made;
}

// Of a list, by a number or a list of them.
Result gather_numbers(const OnnxNode& node, const std::vector<Numbers>& in) {
  if (in.size() != 2 || whole_attribute(node, "axis", 0) != 0 || in[0].shape.size() != 1) return std::nullopt;
  Numbers made{in[1].shape, {}, in[0].is_real};
  const std::int64_t count = std::ssize(in[0].values);
  for (std::int64_t index : in[1].integers()) {
    index += index < 0 ? count : 0;
    if (index < 0 || index >= count) return std::nullopt;
    made.values.push_back(in[0].values[static_cast<std::size_t>(index)]);
  }
  return made;
}

Result slice_numbers(const std::vector<Numbers>& in) {
  const bool is_list =
      in.size() >= 3 && in[0].shape.size() == 1 && in[1].values.size() == 1 && in[2].values.size() == 1;
  if (!is_list || (in.size() == 5 && in[4].values != std::vector<double>{1})) return std::nullopt;
  const std::int64_t count = std::ssize(in[0].values);
  const auto place = [&](const Numbers& number) {
    const std::int64_t index = number.integers().front();
    return std::clamp<std::int64_t>(index < 0 ? index + count : index, 0, count);
  };
  const std::int64_t first = place(in[1]), end = std::max(first, place(in[2]));
  Numbers made{{end - first}, {}, in[0].is_real};
  made.values.assign(in[0].values.begin() + first, in[0].values.begin() + end);
  return made;
}

Result concat_numbers(const std::vector<Numbers>& in) {
  Numbers made;
  for (const Numbers& each : in) {
    if (each.shape.size() != 1) return std::nullopt;
    made.values.insert(made.values.end(), each.values.begin(), each.values.end());
    made.is_real |= each.is_real;
  }
  made.shape = {std::ssize(made.values)};
  return made;
}

Result shape_of_numbers(const std::vector<Numbers>& in) {
  if (in.size() != 1) return std::nullopt;
  return Numbers{{std::ssize(in[0].shape)}, {in[0].shape.begin(), in[0].shape.end()}, false};
}

Result with_shape(const std::vector<Numbers>& in, bool is_list) {
  if (in.empty() || (!is_list && in[0].values.size() != 1)) return std::nullopt;
  Numbers made = in[0];
  made.shape.clear();
  if (is_list) made.shape = {std::ssize(made.values)};
  return made;
}

Result constant_of_shape(const OnnxNode& node, const std::vector<Numbers>& in) {
  if (in.size() != 1) return std::nullopt;
  double count = 1;
  for (const double extent : in[0].values) count *= extent;
  if (!(count >= 0 && count <= kMostOnnxNumbers)) return std::nullopt;
  Numbers made{in[0].integers(), {}, false};
  made.values.assign(static_cast<std::size_t>(count), static_cast<double>(whole_attribute(node, "value", 0)));
  return made;
}

Result where_numbers(const std::vector<Numbers>& in) {
  if (in.size() != 3) return std::nullopt;
  const std::size_t count = std::max({in[0].values.size(), in[1].values.size(), in[2].values.size()});
  Numbers made{{std::int64_t(count)}, {}, in[1].is_real || in[2].is_real};
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](const Numbers& each) { return each.values.size() == 1 ? each.values[0] : each.values.at(i); };
    for (const Numbers& each : in) {
      if (each.values.size() != 1 && each.values.size() != count) return std::nullopt;
    }
    made.values.push_back(at(in[0]) != 0 ? at(in[1]) : at(in[2]));
  }
  if (count == 1) made.shape = in[0].shape;
  return made;
}

}  // namespace

std::vector<std::int64_t> OnnxNumbers::integers() const {
  constexpr double kLargest = 9e15;  // whole numbers below it are exact
  std::vector<std::int64_t> whole;
  for (const double value : values) {
    const double known = std::isnan(value) ? 0 : value;
    whole.push_back(static_cast<std::int64_t>(std::clamp(known, -kLargest, kLargest)));
  }
  return whole;
}

std::optional<OnnxNumbers> compute_numbers(const OnnxNode& node, const std::vector<OnnxNumbers>& in) {
  static const std::map<std::string_view, double (*)(double, double)> kPairs = {
      {"Add", [](double a, double b) { return a + b; }},
      {"Sub", [](double a, double b) { return a - b; }},
      {"Mul", [](double a, double b) { return a * b; }},
      {"Min", [](double a, double b) { return std::min(a, b); }},
      {"Pow", [](double a, double b) { return a > 0             ? portable_pow(a, b)
                                              : a == 0 && b > 0 ? 0.0
                                                                : NAN; }},
      {"Max", [](double a, double b) { return std::max(a, b); }},
      {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }}};
  static const std::map<std::string_view, double (*)(double)> kSingles = {
      {"Sqrt", [](double a) { return portable_sqrt(a); }}, {"Floor", [](double a) { return std::floor(a); }},
      {"Ceil", [](double a) { return std::ceil(a); }},     {"Neg", [](double a) { return -a; }},
      {"Reciprocal", [](double a) { return 1 / a; }},      {"Identity", [](double a) { return a; }},
      {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }}};
  if (const auto pair = kPairs.find(node.op); pair != kPairs.end()) return combine(in, pair->second);
  if (const auto single = kSingles.find(node.op); single != kSingles.end()) return map_each(in, single->second);
  if (node.op == "Div")
    return combine(
        in, [](double a, double b) { return a / b; }, true);
  if (node.op == "Shape") return shape_of_numbers(in);
  if (node.op == "Cast") return cast_numbers(node, in);
  if (node.op == "Gather") return gather_numbers(node, in);
  if (node.op == "Slice") return slice_numbers(in);
  if (node.op == "Concat") return concat_numbers(in);
  if (node.op == "Unsqueeze" || node.op == "Reshape") return with_shape(in, true);
  if (node.op == "Squeeze") return with_shape(in, false);
  if (node.op == "ConstantOfShape") return constant_of_shape(node, in);
  if (node.op == "Where") return where_numbers(in);
  return std::nullopt;
}

}  // namespace dtrain::train
