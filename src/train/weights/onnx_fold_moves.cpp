// Operators that move numbers are views: strides lead to the elements of their input.
#include "onnx_fold_moves.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include <dtrain/base/error.hpp>

#include "tensor_views.hpp"

namespace dtrain::train {
namespace {

using Numbers = OnnxNumbers;
using Inputs = OnnxFoldInputs;
using Shape = OnnxShape;

std::int64_t rank_of(const Numbers& numbers) { return std::ssize(numbers.shape); }

// Refuses what would be too many, or no shape.
std::size_t count_of(const Shape& shape) {
  const bool is_sound = std::ranges::all_of(shape, [](std::int64_t extent) { return extent >= 0; });
  const std::int64_t count = is_sound ? element_count(shape) : -1;
  expect_fold(count >= 0 && count <= kMostOnnxNumbers,
              fmt::format("it makes [{}]; dtrain computes at most {} numbers before a network runs",
                          fmt::join(shape, ", "), kMostOnnxNumbers));
  return static_cast<std::size_t>(count);
}

// The element at an index i of the result is that at first + sum of i * strides.
Numbers viewed(const Numbers& in, const Shape& shape, const Shape& strides, std::int64_t first = 0) {
  Numbers made{shape, {}, in.is_real};
  const std::size_t count = count_of(shape);
  Shape index(shape.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t place = std::inner_product(index.begin(), index.end(), strides.begin(), first);
    made.values.push_back(in.values.at(static_cast<std::size_t>(place)));
    for (std::size_t axis = shape.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  return made;
}

Numbers with_shape(const Numbers& in, Shape shape) {
  expect_fold(count_of(shape) == in.values.size(),
              fmt::format("it makes [{}] of [{}]", fmt::join(shape, ", "), fmt::join(in.shape, ", ")));
  return {std::move(shape), in.values, in.is_real};
}

std::size_t axis_of(std::int64_t axis, std::int64_t rank) {
  const std::int64_t counted = axis < 0 ? axis + rank : axis;
  expect_fold(counted >= 0 && counted < rank, fmt::format("it has no axis {}", axis));
  return static_cast<std::size_t>(counted);
}

// Sorted, and each once.
std::vector<std::size_t> axes_of(const Shape& axes, std::int64_t rank) {
  std::vector<std::size_t> counted;
  for (const std::int64_t axis : axes) counted.push_back(axis_of(axis, rank));
  std::ranges::sort(counted);
  expect_fold(std::ranges::adjacent_find(counted) == counted.end(), "it names an axis twice");
  return counted;
}

}  // namespace

void expect_fold(bool holds, const std::string& what) {
  if (!holds) throw UsageError(what);
}

Numbers broadcast_to(const Numbers& in, const Shape& shape) {
  Shape strides(shape.size(), 0);
  const Shape packed = packed_strides(in.shape);
  const std::size_t added = shape.size() - in.shape.size();
  for (std::size_t i = 0; i < in.shape.size(); ++i) strides[added + i] = in.shape[i] == 1 ? 0 : packed[i];
  return viewed(in, shape, strides);
}

Shape common_shape(const Shape& a, const Shape& b) {
  Shape common(std::max(a.size(), b.size()), 1);
  for (const Shape* each : {&a, &b}) {
    const std::size_t added = common.size() - each->size();
    for (std::size_t i = 0; i < each->size(); ++i) {
      std::int64_t& extent = common[added + i];
      const std::int64_t wanted = (*each)[i];
      expect_fold(extent == 1 || wanted == 1 || extent == wanted,
                  fmt::format("[{}] and [{}] do not fit", fmt::join(a, ", "), fmt::join(b, ", ")));
      extent = extent == 1 ? wanted : extent;
    }
  }
  return common;
}

std::int64_t attribute_of(const OnnxNode& node, const char* name, std::int64_t usual) {
  const auto found = node.attributes.find(name);
  return found == node.attributes.end() ? usual : found->second.integer;
}

Shape known_integers(const OnnxNode& node, const char* name, const Inputs& in, std::size_t input) {
  if (const auto found = node.attributes.find(name); found != node.attributes.end()) return found->second.integers;
  if (input >= in.size() || !in[input]) return {};
  expect_fold(!in[input]->of_samples(),
              fmt::format("its {} depend on the number of samples, which the model leaves free", name));
  return in[input]->integers();
}

Numbers fold_gather(const OnnxNode& node, const Inputs& in) {
  const Numbers& from = *in[0];
  const std::size_t axis = axis_of(attribute_of(node, "axis", 0), rank_of(from));
  Shape shape = from.shape, strides = packed_strides(from.shape);
  const std::int64_t extent = shape[axis], stride = strides[axis];
  const auto at = static_cast<std::ptrdiff_t>(axis);
  shape.erase(shape.begin() + at);
  strides.erase(strides.begin() + at);
  Numbers made{{}, {}, from.is_real};
  const Shape indices = known_integers(node, "indices", in, 1);
  expect_fold(indices.size() == in[1]->values.size(), "its indices are not as many as their shape says");
  // The indices first, then their axes to the place of the one that they stand for.
  Shape whole = in[1]->shape;
  whole.insert(whole.end(), shape.begin(), shape.end());
  count_of(whole);
  for (const std::int64_t index : indices) {
    expect_fold(index >= -extent && index < extent, fmt::format("its index {} is none of {}", index, extent));
    const Numbers part = viewed(from, shape, strides, stride * (index < 0 ? index + extent : index));
    made.values.insert(made.values.end(), part.values.begin(), part.values.end());
  }
  Shape order = packed_strides(whole), wanted = whole;
  const auto listed = rank_of(*in[1]);
  std::rotate(order.begin(), order.begin() + listed, order.begin() + listed + at);
  std::rotate(wanted.begin(), wanted.begin() + listed, wanted.begin() + listed + at);
  return viewed(made, wanted, order);
}

Numbers fold_slice(const OnnxNode& node, const Inputs& in) {
  const Numbers& from = *in[0];
  const Shape starts = known_integers(node, "starts", in, 1), ends = known_integers(node, "ends", in, 2);
  Shape axes = known_integers(node, "axes", in, 3), steps = known_integers(node, "steps", in, 4);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  expect_fold(starts.size() == ends.size() && starts.size() == axes.size() && starts.size() == steps.size(),
              "its starts, ends, axes and steps are not equally many");
  axes_of(axes, rank_of(from));
  Shape shape = from.shape, strides = packed_strides(from.shape);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = axis_of(axes[i], rank_of(from));
    const std::int64_t extent = from.shape[axis], step = steps[i];
    expect_fold(step != 0 && step >= -kMostOnnxNumbers && step <= kMostOnnxNumbers,
                fmt::format("its step is {}", step));
    // Backwards an index may be one before the first.
    const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? extent : extent - 1;
    const auto place = [&](std::int64_t index, std::int64_t low) {
      return std::clamp(index < 0 ? index + extent : index, low, std::max(low, most));
    };
    const std::int64_t begin = place(starts[i], step > 0 ? 0 : std::min<std::int64_t>(0, most)),
                       end = place(ends[i], least);
    const std::int64_t span = step > 0 ? end - begin : begin - end;
    shape[axis] = span <= 0 ? 0 : (span - 1) / std::abs(step) + 1;
    first += shape[axis] == 0 ? 0 : begin * strides[axis];
    strides[axis] *= step;
  }
  return viewed(from, shape, strides, first);
}

Numbers fold_concat(const OnnxNode& node, const Inputs& in) {
  const Shape& like = in[0]->shape;
  const std::size_t axis = axis_of(attribute_of(node, "axis", 0), std::ssize(like));
  const std::int64_t inner = element_count({like.begin() + static_cast<std::ptrdiff_t>(axis) + 1, like.end()});
  const std::int64_t outer = element_count({like.begin(), like.begin() + static_cast<std::ptrdiff_t>(axis)});
  Numbers made{like, {}, false};
  made.shape[axis] = 0;
  for (const Numbers* each : in) {
    Shape beside = each->shape;
    expect_fold(beside.size() == like.size(), "it joins tensors of other axes");
    made.shape[axis] += std::exchange(beside[axis], like[axis]);
    expect_fold(beside == like, "it joins tensors of other axes");
    made.is_real |= each->is_real;
  }
  count_of(made.shape);
  for (std::int64_t row = 0; row < outer; ++row) {
    for (const Numbers* each : in) {
      const std::int64_t length = each->shape[axis] * inner;
      const auto first = each->values.begin() + row * length;
      made.values.insert(made.values.end(), first, first + length);
    }
  }
  return made;
}

Numbers fold_reshape(const OnnxNode& node, const Inputs& in) {
  Shape shape = known_integers(node, "shape", in, 1);
  const bool zero_is_zero = attribute_of(node, "allowzero", 0) != 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero && i < in[0]->shape.size()) shape[i] = in[0]->shape[i];
  }
  if (const auto open = std::ranges::find(shape, -1); open != shape.end()) {
    *open = 1;
    const std::int64_t known = element_count(shape);
    *open = known <= 0 ? 0 : std::ssize(in[0]->values) / known;
  }
  return with_shape(*in[0], std::move(shape));
}

Numbers fold_transpose(const OnnxNode& node, const Inputs& in) {
  const std::int64_t rank = rank_of(*in[0]);
  Shape order(static_cast<std::size_t>(rank));
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto found = node.attributes.find("perm"); found != node.attributes.end()) order = found->second.integers;
  expect_fold(std::ssize(order) == rank, "it does not name each axis once");
  axes_of(order, rank);
  Shape shape, strides;
  for (const std::int64_t axis : order) {
    shape.push_back(in[0]->shape[axis_of(axis, rank)]);
    strides.push_back(packed_strides(in[0]->shape)[axis_of(axis, rank)]);
  }
  return viewed(*in[0], shape, strides);
}

Numbers fold_unsqueeze(const OnnxNode& node, const Inputs& in) {
  const Shape axes = known_integers(node, "axes", in, 1);
  Shape shape = in[0]->shape;
  for (const std::size_t axis : axes_of(axes, rank_of(*in[0]) + std::ssize(axes)))
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  return with_shape(*in[0], std::move(shape));
}

Numbers fold_squeeze(const OnnxNode& node, const Inputs& in) {
  Shape shape = in[0]->shape;
  const std::vector<std::size_t> axes = axes_of(known_integers(node, "axes", in, 1), rank_of(*in[0]));
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  if (axes.empty()) std::erase(shape, 1);
  return with_shape(*in[0], std::move(shape));
}

Numbers fold_shape(const OnnxNode& node, const Inputs& in) {
  const std::int64_t rank = rank_of(*in[0]);
  const auto place = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  };
  const std::int64_t first = place(attribute_of(node, "start", 0)), end = place(attribute_of(node, "end", rank));
  const std::span<const std::int64_t> extents = in[0]->shape;
  const std::int64_t count = std::max<std::int64_t>(0, end - first);
  return whole_numbers({count}, extents.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
}

Numbers fold_size(const OnnxNode&, const Inputs& in) { return {{}, {{double(in[0]->values.size())}}, false}; }

Numbers fold_constant_of_shape(const OnnxNode& node, const Inputs& in) {
  const auto found = node.attributes.find("value");
  const OnnxAttribute repeated = found == node.attributes.end() ? OnnxAttribute{.is_real = true} : found->second;
  Numbers made{known_integers(node, "shape", in, 0), {}, repeated.is_real};
  const double value = repeated.is_real ? double(repeated.real) : static_cast<double>(repeated.integer);
  made.values.assign(count_of(made.shape), {value, false});
  return made;
}

Numbers fold_expand(const OnnxNode& node, const Inputs& in) {
  return broadcast_to(*in[0], common_shape(in[0]->shape, known_integers(node, "shape", in, 1)));
}

}  // namespace dtrain::train
