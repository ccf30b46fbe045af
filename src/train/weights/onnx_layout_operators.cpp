// Operators of ONNX that give the same numbers other axes, or some of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include <dtrain/base/error.hpp>

#include "onnx_reader.hpp"
#include "tensor_views.hpp"

namespace dtrain::train {
namespace {

// The order of so many axes with the last first, where a Transpose names none.
Extents turned_around(std::size_t rank) {
  Extents order(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

bool is_order(Extents order, std::size_t rank) {
  std::ranges::sort(order);
  Extents ascending(rank);
  std::iota(ascending.begin(), ascending.end(), 0);
  return order == ascending;
}

// Axes of extent 1 at these places of the result.
Extents with_ones(Extents shape, const Extents& axes) {
  for (const std::int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return shape;
}

// By the numbers of onnx.proto's TensorProto.DataType.
std::string element_type(std::int64_t type) {
  constexpr std::array<const char*, 17> kNames = {"UNDEFINED", "FLOAT",  "UINT8",     "INT8",       "UINT16",  "INT16",
                                                  "INT32",     "INT64",  "STRING",    "BOOL",       "FLOAT16", "DOUBLE",
                                                  "UINT32",    "UINT64", "COMPLEX64", "COMPLEX128", "BFLOAT16"};
  const bool is_known = type >= 0 && std::cmp_less(type, kNames.size());
  return is_known ? kNames.at(static_cast<std::size_t>(type)) : fmt::format("type {}", type);
}

bool is_real_type(std::int64_t type) {
  const std::string name = element_type(type);
  return name == "FLOAT" || name == "FLOAT16" || name == "DOUBLE" || name == "BFLOAT16";
}

bool broadcasts_to_itself(const Extents& wanted, const Extents& given) {
  if (wanted.size() > given.size()) return false;
  const auto behind = given.end() - std::ssize(wanted);
  return std::ranges::equal(wanted, std::ranges::subrange(behind, given.end()),
                            [](std::int64_t a, std::int64_t b) { return a == b || a == 1; });
}

}  // namespace

// 0 keeps an extent, and -1 is what the others leave.
Extents OnnxReader::extents_for(const OnnxNode& node, const Extents& given, const Extents& stated) const {
  Extents extents = stated;
  const bool zero_is_zero = integer(node, "allowzero", 0) != 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 && !zero_is_zero && i < given.size()) extents[i] = given[i];
  }
  const auto open = std::ranges::find(extents, -1);
  if (open != extents.end()) {
    *open = 1;
    const std::int64_t known = element_count(extents);
    *open = known <= 0 ? 0 : element_count(given) / known;
  }
  const bool fits = std::ranges::all_of(extents, [](std::int64_t extent) { return extent >= 1; }) &&
                    element_count(extents) == element_count(given);
  require(fits, node, fmt::format("it makes [{}] of [{}]", shown(stated), shown(given)));
  return extents;
}

// Tensors of the file, before any layer is added. False: the node does not change a tensor of the file alone.
bool OnnxReader::change_constant(const OnnxNode& node) {
  const ForeignTensor* tensor = node.outputs.empty() ? nullptr : find_tensor(node, 0);
  if (!tensor) return false;
  const std::size_t rank = tensor->shape.size();
  std::optional<ForeignTensor> made;
  if (node.op == "Identity" || (node.op == "Cast" && is_real_type(integer(node, "to", 0)))) {
    made = *tensor;  // PyTorch writes tensors of equal values once, and names the others by Identity
  } else if (node.op == "Transpose") {
    const Extents order = node.attributes.contains("perm") ? integers_of(node, "perm", 1) : turned_around(rank);
    require(is_order(order, rank), node, "it does not name each axis once");
    made = transposed(*tensor, order);
  } else if (node.op == "Reshape" && numbers_of(node, 1)) {
    made = reshaped(*tensor, extents_for(node, tensor->shape, integers_of(node, "shape", 1)));
  } else if (node.op == "Unsqueeze") {
    const Extents axes = integers_of(node, "axes", 1);
    made = reshaped(*tensor, with_ones(tensor->shape, axes_of(node, axes, rank + axes.size())));
  } else if (node.op == "Squeeze") {
    Extents shape = tensor->shape;
    const Extents axes = axes_of(node, integers_of(node, "axes", 1), rank);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) shape.erase(shape.begin() + *axis);
    if (axes.empty()) std::erase(shape, 1);
    made = reshaped(*tensor, shape);
  }
  if (!made) return false;
  made->name = node.outputs.front();
  made_.push_back(*std::move(made));
  constants_[node.outputs.front()] = &made_.back();
  return true;
}

// dtrain computes in float32, whatever the width of the model's real numbers.
void OnnxReader::cast(const OnnxNode& node) {
  const std::int64_t type = integer(node, "to", 0);
  require(is_real_type(type), node,
          fmt::format("it makes numbers of {}, and a layer has real ones", element_type(type)));
  hand_on(node);
}

void OnnxReader::reshape(const OnnxNode& node) {
  OnnxValue value = unpadded_value_of(node, 0);
  const Extents given = extents_of(value.layout);
  Extents extents;
  if (node.op == "Flatten") {
    std::int64_t axis = integer(node, "axis", 1);
    axis += axis < 0 ? std::ssize(given) : 0;
    require(axis >= 0 && axis <= std::ssize(given), node, "it has no such axis");
    extents = {element_count({given.begin(), given.begin() + axis}),
               element_count({given.begin() + axis, given.end()})};
  } else {
    const auto numbers = numbers_of(node, 1);
    require(node.attributes.contains("shape") || numbers, node, "its extents are not known before it runs");
    extents = extents_for(node, given, numbers ? numbers->integers() : integers_of(node, "shape", 1));
  }
  auto layout = reshaped(value.layout, extents);
  require(layout.has_value(), node,
          fmt::format("it makes [{}] of [{}], which mixes axes", shown(extents), shown(given)));
  value.layout = *std::move(layout);
  give(node, flattened(node, std::move(value)));
}

// Channels and pixels in one axis are a list, for which there is a layer.
OnnxValue OnnxReader::flattened(const OnnxNode& node, OnnxValue value) {
  if (value.form != OnnxForm::layer || value.layout.size() != 2) return value;
  const OnnxLayout image = image_layout(batch_, shape_of(value));
  if (pixels_of(value) == 1 || value.layout[1] != joined(image, 1, 3)) return value;
  const int layer = add(node, nn::Flatten{}, {layer_of(node, 0)});
  return {.layer = layer, .layout = {value.layout[0], image_layout(1, builder_.shape(layer))[1]}};
}

void OnnxReader::transpose(const OnnxNode& node) {
  OnnxValue value = unpadded_value_of(node, 0);
  const std::size_t rank = value.layout.size();
  const Extents order = node.attributes.contains("perm") ? integers_of(node, "perm", 1) : turned_around(rank);
  require(is_order(order, rank), node, "it does not name each axis once");
  value.layout = transposed(value.layout, order);
  give(node, std::move(value));
}

void OnnxReader::squeeze(const OnnxNode& node) {
  OnnxValue value = unpadded_value_of(node, 0);
  Extents axes = axes_of(node, integers_of(node, "axes", 1), value.layout.size());
  if (axes.empty()) {
    for (std::size_t axis = 0; axis < value.layout.size(); ++axis) {
      if (value.layout[axis].empty()) axes.push_back(static_cast<std::int64_t>(axis));
    }
  }
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    require(value.layout[static_cast<std::size_t>(*axis)].empty(), node, fmt::format("its axis {} is not 1", *axis));
    value.layout.erase(value.layout.begin() + *axis);
  }
  give(node, std::move(value));
}

void OnnxReader::unsqueeze(const OnnxNode& node) {
  OnnxValue value = unpadded_value_of(node, 0);
  const Extents axes = integers_of(node, "axes", 1);
  for (const std::int64_t axis : axes_of(node, axes, value.layout.size() + axes.size())) {
    value.layout.insert(value.layout.begin() + axis, std::vector<OnnxPart>());
  }
  give(node, std::move(value));
}

OnnxValue OnnxReader::part_of(const OnnxNode& node, const OnnxValue& value, std::size_t axis, std::int64_t first,
                              std::int64_t count) {
  const std::vector<OnnxPart>& parts = value.layout[axis];
  const std::int64_t extent = extents_of(value.layout)[axis];
  require(first >= 0 && count >= 1 && first + count <= extent, node,
          fmt::format("it takes {} from {} on of {}", count, first, shown({extent})));
  if (count == extent) return value;
  require(parts.size() == 1 && value.form == OnnxForm::layer, node,
          fmt::format("dtrain has no layer that takes {} of axis {}", count, axis));
  OnnxValue part = value;
  if (parts[0].axis == OnnxAxis::channel) {
    part.first_channel += first * parts[0].stride;
    part.layout[axis] = {{OnnxAxis::channel, count, parts[0].stride}};
    if (count == 1) part.layout[axis].clear();
    return part;
  }
  require(parts[0].axis == OnnxAxis::pixel && first == 0 && count == 1, node,
          fmt::format("dtrain has no layer that takes tokens {} to {} of {}, but the first one alone", first,
                      first + count - 1, shown({extent})));
  part.layout[axis].clear();
  const auto has_pixels = [](const std::vector<OnnxPart>& each) {
    return std::ranges::any_of(each, [](const OnnxPart& one) { return one.axis == OnnxAxis::pixel; });
  };
  if (std::ranges::any_of(part.layout, has_pixels)) return part;  // the first row or column, until the other is taken
  part.layer = add(node, nn::FirstToken{}, {layer_of(node, 0)});
  part.factor = 1;
  return part;
}

void OnnxReader::slice(const OnnxNode& node) {
  OnnxValue value = unpadded_value_of(node, 0);
  const Extents starts = integers_of(node, "starts", 1), ends = integers_of(node, "ends", 2);
  Extents axes = integers_of(node, "axes", 3);
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  const Extents steps = integers_of(node, "steps", 4);
  require(!starts.empty() && starts.size() == ends.size() && starts.size() == axes.size(), node,
          "its indices are not known before it runs");
  require(std::ranges::count(steps, 1) == std::ssize(steps), node, "it leaves indices out");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Extents axis = axes_of(node, {axes[i]}, value.layout.size());
    const std::int64_t extent = extents_of(value.layout)[static_cast<std::size_t>(axis[0])];
    const auto place = [&](std::int64_t index) {
      return std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent);
    };
    const std::int64_t first = place(starts[i]);
    value = part_of(node, value, static_cast<std::size_t>(axis[0]), first, place(ends[i]) - first);
  }
  give(node, std::move(value));
}

void OnnxReader::split(const OnnxNode& node) {
  const OnnxValue value = unpadded_value_of(node, 0);
  const Extents named = axes_of(node, {integer(node, "axis", 0)}, value.layout.size());
  const auto axis = static_cast<std::size_t>(named[0]);
  const std::int64_t extent = extents_of(value.layout)[axis], outputs = std::ssize(node.outputs);
  Extents counts = integers_of(node, "split", 1);
  if (counts.empty()) counts.assign(node.outputs.size(), extent / outputs);
  require(std::ssize(counts) == outputs && element_count(counts) > 0 &&
              std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == extent,
          node, fmt::format("it splits {} into {} parts", shown({extent}), outputs));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < counts.size(); first += counts[i++]) {
    if (readers_of(node.outputs[i]).empty()) continue;
    values_[node.outputs[i]] = part_of(node, value, axis, first, counts[i]);
  }
}

// One index of an axis, which is gone behind it unless the index is a list.
void OnnxReader::gather(const OnnxNode& node) {
  const OnnxValue value = unpadded_value_of(node, 0);
  const Extents named = axes_of(node, {integer(node, "axis", 0)}, value.layout.size());
  const auto axis = static_cast<std::size_t>(named[0]);
  const auto index = numbers_of(node, 1);
  require(index && index->values.size() == 1 && index->shape.size() <= 1, node, "it takes more than one index");
  require(!index->of_samples(), node, "its index depends on the number of samples, which the model leaves free");
  std::int64_t first = index->integers().front();
  first += first < 0 ? extents_of(value.layout)[axis] : 0;
  OnnxValue part = part_of(node, value, axis, first, 1);
  if (index->shape.empty()) part.layout.erase(part.layout.begin() + static_cast<std::ptrdiff_t>(axis));
  give(node, std::move(part));
}

// Zeros around an image, or numbers that no maximum takes: the layer behind it pads with them.
void OnnxReader::pad(const OnnxNode& node) {
  OnnxValue value = value_of(node, 0);
  image_of(node, 0);
  const auto mode = node.attributes.find("mode");
  const bool is_constant = mode == node.attributes.end() || mode->second.text == "constant";
  const std::optional<float> number = has_input(node, 2) ? number_of(node, 2) : real(node, "value", 0);
  value.pads_lowest = number && *number <= std::numeric_limits<float>::lowest();
  require(is_constant && number && (*number == 0 || value.pads_lowest), node,
          "it pads with something else than zeros or minus infinity");
  const Extents pads = integers_of(node, "pads", 1);
  Extents axes = integers_of(node, "axes", 3);
  if (axes.empty()) axes = {0, 1, 2, 3};
  require(pads.size() == 2 * axes.size(), node, "its pads are not known before it runs");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes_of(node, {axes[i]}, value.layout.size()).front();
    const std::int64_t before = pads[i], behind = pads[i + axes.size()];
    require(before >= 0 && behind >= 0 && (axis >= 2 || (before == 0 && behind == 0)), node,
            fmt::format("it pads axis {} by {} and {}", axis, before, behind));
    if (axis < 2) continue;
    value.zeros[static_cast<std::size_t>(axis - 2)] = before;
    value.zeros[static_cast<std::size_t>(axis)] = behind;
  }
  value.pads_lowest = value.pads_lowest && value.zeros != std::array<std::int64_t, 4>{};
  give(node, std::move(value));
}

// A tensor of the file, repeated for each sample.
void OnnxReader::expand(const OnnxNode& node) {
  const auto shape = numbers_of(node, 1);
  require(shape.has_value(), node, "its extents are not known before it runs");
  Extents extents = shape->integers();
  if (is_value(node, 0)) {
    const bool stays = node.op == "Expand" && broadcasts_to_itself(extents, extents_of(value_of(node, 0).layout));
    require(stays, node, "it repeats what a layer computes");
    return hand_on(node);
  }
  const ForeignTensor& tensor = tensor_of(node, 0, "tensor");
  if (node.op == "Tile") {
    require(extents.size() == tensor.shape.size(), node, "its repeats are not as many as its axes");
    for (std::size_t i = 0; i < extents.size(); ++i) extents[i] *= tensor.shape[i];
  }
  auto wide = broadcast(tensor, extents);
  require(wide.has_value(), node,
          fmt::format("it makes [{}] of [{}]", fmt::join(extents, ", "), fmt::join(tensor.shape, ", ")));
  wide->name = node.outputs.front();
  made_.push_back(*std::move(wide));
  constants_[node.outputs.front()] = &made_.back();
}

}  // namespace dtrain::train
