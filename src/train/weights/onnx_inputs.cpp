// What a node of an ONNX model reads: values, tensors of the file, numbers and attributes.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>

#include "onnx_reader.hpp"

namespace dtrain::train {

bool OnnxReader::has_input(const OnnxNode& node, std::size_t input) {
  return input < node.inputs.size() && !node.inputs[input].empty();
}

bool OnnxReader::is_value(const OnnxNode& node, std::size_t input) const {
  return has_input(node, input) && values_.contains(node.inputs[input]);
}

const OnnxValue& OnnxReader::value_of(const OnnxNode& node, std::size_t input) const {
  if (!is_value(node, input)) {
    const std::string name = has_input(node, input) ? node.inputs[input] : fmt::format("number {}", input + 1);
    constexpr const char* kSimplify = "compute the weights of the model first, such as with onnxsim";
    const bool is_other = has_input(node, input) && onnx_.others.contains(name);
    if (is_other) refuse(node, fmt::format("its input {} is a tensor of whole numbers", name), kSimplify);
    if (find_tensor(node, input)) refuse(node, fmt::format("it computes a weight from the tensor {}", name), kSimplify);
    refuse(node, fmt::format("its input {} is not computed from the image", name));
  }
  return values_.at(node.inputs[input]);
}

std::int64_t OnnxReader::pixels_of(const OnnxValue& value) const {
  return std::int64_t{shape_of(value).h} * shape_of(value).w;
}

std::optional<std::size_t> OnnxReader::channel_axis(const OnnxValue& value) const {
  const std::int64_t channels = shape_of(value).c;
  if (value.form != OnnxForm::layer || value.first_channel != 0) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t axis = 0; axis < value.layout.size(); ++axis) {
    const std::vector<OnnxPart>& parts = value.layout[axis];
    if (channels > 1 && is_whole(parts, OnnxAxis::channel, channels)) found = axis;
  }
  // A single channel has no part: its axis is the usual one.
  if (channels == 1 && value.layout.size() > 1 && value.layout[1].empty()) found = 1;
  return found;
}

const OnnxValue& OnnxReader::unpadded_value_of(const OnnxNode& node, std::size_t input) const {
  const OnnxValue& value = value_of(node, input);
  require(value.zeros == std::array<std::int64_t, 4>{}, node,
          "a Pad made its input larger, which only convolutions and poolings read");
  return value;
}

int OnnxReader::layer_of(const OnnxNode& node, std::size_t input) {
  const OnnxValue value = unpadded_value_of(node, input);
  if (value.form != OnnxForm::layer) {
    const bool is_curve = value.form == OnnxForm::erf || value.form == OnnxForm::one_plus_erf;
    refuse(node, fmt::format("it reads {} that no layer of dtrain has as its output",
                             is_curve ? "an error function" : "the shares of an attention"));
  }
  std::int64_t channels = 1, pixels = 1;
  for (const std::vector<OnnxPart>& parts : value.layout) {
    for (const OnnxPart& part : parts) {
      channels *= part.axis == OnnxAxis::channel ? part.extent : 1;
      pixels *= part.axis == OnnxAxis::pixel ? part.extent : 1;
    }
  }
  require(channels == shape_of(value).c, node,
          fmt::format("it reads {} of the {} channels of a layer", channels, shape_of(value).c));
  require(pixels == pixels_of(value), node,
          fmt::format("it reads {} of the {} pixels of a layer", pixels, pixels_of(value)));
  if (value.factor == 1) return value.layer;
  const auto [place, is_new] = scales_.try_emplace({value.scaled_by, value.layer}, 0);
  if (is_new) place->second = add(*value.scaled_by, nn::Scale{value.factor}, {value.layer});
  OnnxValue& scaled = values_.at(node.inputs[input]);
  scaled.layer = place->second;
  scaled.factor = 1;
  return place->second;
}

int OnnxReader::image_of(const OnnxNode& node, std::size_t input) {
  const OnnxValue& value = value_of(node, input);
  const nn::Shape& shape = shape_of(value);
  const bool is_image = value.form != OnnxForm::layer || value.layout == image_layout(batch_, shape);
  require(is_image, node,
          fmt::format("its input [{}] is not [n, {}, {}, {}] of the layer before", shown(extents_of(value.layout)),
                      shape.c, shape.h, shape.w));
  return layer_of(node, input);
}

std::pair<int, std::array<std::int64_t, 4>> OnnxReader::padded_image_of(const OnnxNode& node, std::size_t input) {
  value_of(node, input);
  OnnxValue& value = values_.at(node.inputs[input]);
  const auto zeros = std::exchange(value.zeros, {});
  const int image = image_of(node, input);
  values_.at(node.inputs[input]).zeros = zeros;
  return {image, zeros};
}

const ForeignTensor* OnnxReader::find_tensor(const std::string& name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : found->second;
}

const ForeignTensor* OnnxReader::find_tensor(const OnnxNode& node, std::size_t input) const {
  return has_input(node, input) ? find_tensor(node.inputs[input]) : nullptr;
}

const ForeignTensor& OnnxReader::tensor_of(const OnnxNode& node, std::size_t input, const char* what) const {
  const ForeignTensor* tensor = find_tensor(node, input);
  if (!tensor) refuse(node, fmt::format("its {} is no tensor of the file", what));
  return *tensor;
}

std::optional<float> OnnxReader::number_of(const OnnxNode& node, std::size_t input) const {
  const auto numbers = numbers_of(node, input);
  if (!numbers || numbers->values.size() != 1) return {};
  require(!numbers->of_samples(), node, "it computes with the number of samples, which the model leaves free");
  return static_cast<float>(numbers->values.front().value);
}

std::optional<OnnxNumbers> OnnxReader::numbers_of(const OnnxNode& node, std::size_t input) const {
  if (!has_input(node, input)) return {};
  if (const auto found = numbers_.find(node.inputs[input]); found != numbers_.end()) return found->second;
  const ForeignTensor* tensor = find_tensor(node, input);
  const auto is_one = [](std::int64_t extent) { return extent == 1; };
  if (!tensor || !std::ranges::all_of(tensor->shape, is_one)) return {};
  float number = 0;
  copy_values(*tensor, std::span(&number, 1));
  return OnnxNumbers{tensor->shape, {{number, false}}, true};
}

Extents OnnxReader::integers_of(const OnnxNode& node, const char* attribute, std::size_t input) const {
  const auto found = node.attributes.find(attribute);
  if (found != node.attributes.end()) return found->second.integers;
  const auto numbers = numbers_of(node, input);
  require(!numbers || !numbers->of_samples(), node,
          fmt::format("its {} depend on the number of samples, which the model leaves free", attribute));
  return numbers ? numbers->integers() : Extents();
}

Extents OnnxReader::axes_of(const OnnxNode& node, Extents axes, std::size_t rank) const {
  for (std::int64_t& axis : axes) {
    axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
    require(axis >= 0 && std::cmp_less(axis, rank), node, fmt::format("it has no axis {}", axis));
  }
  std::ranges::sort(axes);
  require(std::ranges::adjacent_find(axes) == axes.end(), node, "it names an axis twice");
  return axes;
}

std::vector<const OnnxNode*> OnnxReader::readers_of(const std::string& value) const {
  std::vector<const OnnxNode*> readers;
  if (const auto found = readers_.find(value); found != readers_.end()) readers = found->second;
  std::erase_if(readers, [](const OnnxNode* node) { return node->op == "Shape"; });
  return readers;
}

const OnnxNode* OnnxReader::only_reader(const std::string& value) const {
  const std::vector<const OnnxNode*> readers = readers_of(value);
  return readers.size() != 1 || value == onnx_.outputs.front() ? nullptr : readers.front();
}

std::int64_t OnnxReader::integer(const OnnxNode& node, const char* attribute, std::int64_t usual) const {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? usual : found->second.integer;
}

float OnnxReader::real(const OnnxNode& node, const char* attribute, float usual) const {
  const auto found = node.attributes.find(attribute);
  return found == node.attributes.end() ? usual : found->second.real;
}

int OnnxReader::small(const OnnxNode& node, std::int64_t number) const {
  if (!std::in_range<int>(number)) refuse(node, fmt::format("{} is too large", number));
  return static_cast<int>(number);
}

void OnnxReader::require(bool holds, const OnnxNode& node, const std::string& what) const {
  if (!holds) refuse(node, what);
}

}  // namespace dtrain::train
