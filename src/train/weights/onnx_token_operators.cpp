// Operators of ONNX behind which layers of transformers stand: products, norms of channels and attention.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

#include "onnx_reader.hpp"
#include "tensor_views.hpp"

namespace dtrain::train {
namespace {

bool is_close(float a, float b) { return std::fabs(a - b) <= 1e-4f * std::fabs(b); }

// Extents of 1 behind the others, as a convolution of single pixels has them.
ForeignTensor with_window(ForeignTensor matrix) {
  matrix.shape.insert(matrix.shape.end(), 2, 1);
  matrix.strides.insert(matrix.strides.end(), 2, 1);
  return matrix;
}

// A token that was repeated for each sample, as [1, 1, channels].
std::optional<ForeignTensor> one_token(const ForeignTensor& repeated, std::size_t channel_axis) {
  for (std::size_t axis = 0; axis < repeated.shape.size(); ++axis) {
    if (axis != channel_axis && repeated.shape[axis] != 1 && repeated.strides[axis] != 0) return std::nullopt;
  }
  ForeignTensor token = repeated;
  token.shape = {1, 1, repeated.shape[channel_axis]};
  token.strides = {1, 1, repeated.strides[channel_axis]};
  return token;
}

}  // namespace

// A product with a matrix of the file, whose weight is [out, in] here, or one of two values of an attention.
void OnnxReader::add_product(const OnnxNode& node) {
  const bool general = node.op == "Gemm";
  if (!general && is_value(node, 1)) return multiply_values(node);
  value_of(node, 0);
  ForeignTensor weight = tensor_of(node, 1, "weight");
  require(weight.shape.size() == 2, node, "its weight is no matrix");
  require(!general || (integer(node, "transA", 0) == 0 && real(node, "alpha", 1) == 1 && real(node, "beta", 1) == 1),
          node, "it scales or turns what it multiplies");
  if (!general || integer(node, "transB", 0) == 0) weight = transposed(weight, {1, 0});
  const std::size_t rank = value_of(node, 0).layout.size();
  require(rank >= 2, node, "its input is a list");
  const ForeignTensor* bias =
      general && has_input(node, 2) ? &tensor_of(node, 2, "bias") : bias_behind(node, weight.shape[0], rank - 1, rank);
  if (bias) check_bias(node, *bias, weight.shape[0]);
  add_dense(node, std::move(weight), bias);
}

void OnnxReader::add_dense(const OnnxNode& node, ForeignTensor weight, const ForeignTensor* bias) {
  const OnnxValue value = value_of(node, 0);
  const int in = layer_of(node, 0);
  const std::int64_t channels = shape_of(value).c, last = extents_of(value.layout).back();
  // Of images of another size a layer of all pixels has another weight, which then begins anew.
  require(weight.shape[1] == last || is_other_image_, node,
          fmt::format("its weight takes {} values, and its input has {}: is the size of the images another one?",
                      weight.shape[1], last));
  require(is_whole(value.layout.back(), OnnxAxis::channel, channels), node,
          "the last axis of its input is not all channels of a layer");
  const int out = small(node, weight.shape[0]);
  int layer = 0;
  if (pixels_of(value) == 1) {
    layer = add(node, nn::Dense{.out = out, .bias = bias != nullptr}, {in});
  } else {
    layer = add(node, nn::Convolution{.out = out, .bias = bias != nullptr}, {in});
    weight = with_window(std::move(weight));
  }
  OnnxLayout layout = value.layout;
  layout.back() = image_layout(1, builder_.shape(layer))[1];
  give(node, {.layer = layer, .layout = std::move(layout)});
  name_tensors(bias ? std::vector{weight, *bias} : std::vector{weight});
}

bool OnnxReader::is_channel_vector(const OnnxValue& value, const ForeignTensor& tensor) const {
  const auto axis = channel_axis(value);
  const std::size_t rank = value.layout.size();
  if (!axis || tensor.shape.size() > rank || tensor.shape.size() < rank - *axis) return false;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const bool is_channel = rank - tensor.shape.size() + i == *axis;
    if (tensor.shape[i] != (is_channel ? shape_of(value).c : 1)) return false;
  }
  return true;
}

// The numbers of a tensor of one for each channel, whichever axis they are.
ForeignTensor OnnxReader::channel_vector(const OnnxNode& node, const ForeignTensor& tensor,
                                         std::int64_t channels) const {
  const auto vector = reshaped(tensor, {channels});
  if (!vector) refuse(node, fmt::format("{} is not one number for each of {} channels", tensor.name, channels));
  return *vector;
}

// A number for each token is a position.
void OnnxReader::add_constant(const OnnxNode& node, std::size_t input, std::size_t constant) {
  OnnxValue value = value_of(node, input);
  const auto number = number_of(node, constant);
  if (number && value.form == OnnxForm::erf) {
    require(
        *number == 1 && value.factor == 1, node,
        fmt::format("it adds {} to an error function times {}: a gelu adds 1 to one times 1", *number, value.factor));
    value.form = OnnxForm::one_plus_erf;
    return give(node, std::move(value));
  }
  if (number == 0.0f) return give(node, std::move(value));  // where a sum of branches begins
  const ForeignTensor& tensor = tensor_of(node, constant, "addend");
  const int in = layer_of(node, input);
  const auto axis = channel_axis(value);
  const auto wide = broadcast(tensor, Extents(value.layout.size(), 1));
  require(axis && wide && wide->shape.size() == value.layout.size(), node, "it adds a tensor of another shape");
  // The axes of pixels in their order, then the channels.
  Extents order, rest;
  for (std::size_t each = 0; each < value.layout.size(); ++each) {
    const std::vector<OnnxPart>& parts = value.layout[each];
    const bool is_pixel = !parts.empty() && parts.front().axis == OnnxAxis::pixel;
    if (each != *axis) (is_pixel ? order : rest).push_back(static_cast<std::int64_t>(each));
  }
  Extents all = rest;
  all.insert(all.end(), order.begin(), order.end());
  all.push_back(static_cast<std::int64_t>(*axis));
  const std::int64_t tokens = pixels_of(value), channels = shape_of(value).c;
  const bool in_order = is_whole(joined(transposed(value.layout, order), 0, order.size()), OnnxAxis::pixel, tokens);
  const auto position = reshaped(transposed(*wide, all), {1, tokens, channels});
  require(in_order && position && tokens > 1, node,
          fmt::format("dtrain has no layer that adds [{}] to [{}] here", fmt::join(tensor.shape, ", "),
                      shown(extents_of(value.layout))));
  give(node, {.layer = add(node, nn::Position{}, {in}), .layout = value.layout});
  name_tensors({*position});
}

void OnnxReader::multiply_constant(const OnnxNode& node, std::size_t input, const ForeignTensor& tensor) {
  const OnnxValue value = value_of(node, input);
  const int in = layer_of(node, input);
  require(is_channel_vector(value, tensor), node,
          fmt::format("dtrain has no layer that multiplies [{}] by [{}]", shown(extents_of(value.layout)),
                      fmt::join(tensor.shape, ", ")));
  ForeignTensor gain = with_window(channel_vector(node, tensor, shape_of(value).c));
  give(node, {.layer = add(node, nn::LayerScale{.initial = 1}, {in}), .layout = value.layout});
  name_tensors({std::move(gain)});
}

// Over pixels, it is a pooling; over channels, it begins a norm.
void OnnxReader::add_mean(const OnnxNode& node) {
  const OnnxValue value = value_of(node, 0);
  const Extents axes = axes_of(node, integers_of(node, "axes", 1), value.layout.size());
  if (axes.empty()) {
    require(!has_input(node, 1) && integer(node, "noop_with_empty_axes", 0) == 1, node,
            "it names no axes: it is the mean over all of them, samples too");
    return hand_on(node);
  }
  std::vector<OnnxPart> parts;
  for (const std::int64_t axis : axes) {
    const std::vector<OnnxPart>& each = value.layout[static_cast<std::size_t>(axis)];
    parts.insert(parts.end(), each.begin(), each.end());
  }
  if (is_whole(parts, OnnxAxis::channel, shape_of(value).c) && add_decomposed_norm(node)) return;
  std::int64_t pixels = 1;
  for (const OnnxPart& part : parts) pixels *= part.axis == OnnxAxis::pixel ? part.extent : 0;
  require(pixels == pixels_of(value), node, "it is no mean over the pixels of an image, and no layer normalization");
  const int in = layer_of(node, 0);
  const int layer = add(node, nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {in});
  OnnxLayout layout;
  const bool keeps = integer(node, "keepdims", 1) != 0;
  for (std::size_t axis = 0; axis < value.layout.size(); ++axis) {
    const bool is_pooled = std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    if (!is_pooled) layout.push_back(value.layout[axis]);
    if (is_pooled && keeps) layout.emplace_back();
  }
  give(node, {.layer = layer, .layout = std::move(layout)});
}

void OnnxReader::add_layer_norm(const OnnxNode& node) {
  const OnnxValue value = value_of(node, 0);
  const std::int64_t channels = shape_of(value).c;
  const Extents axis = axes_of(node, {integer(node, "axis", -1)}, value.layout.size());
  require(
      std::cmp_equal(axis[0] + 1, value.layout.size()) && is_whole(value.layout.back(), OnnxAxis::channel, channels),
      node, "it normalizes other axes than the channels");
  const ForeignTensor gain = channel_vector(node, tensor_of(node, 1, "gain"), channels);
  const auto count = static_cast<std::size_t>(channels);
  const ForeignTensor shift = has_input(node, 2)
                                  ? channel_vector(node, tensor_of(node, 2, "shift"), channels)
                                  : make_tensor(node.outputs.front() + ".bias", {channels}, std::vector<float>(count));
  give_norm(node, node, value, real(node, "epsilon", 1e-5f), {gain, shift});
}

void OnnxReader::give_norm(const OnnxNode& first, const OnnxNode& last, const OnnxValue& value, float epsilon,
                           std::vector<ForeignTensor> tensors) {
  const int in = layer_of(first, 0);
  OnnxNode named = last;
  named.inputs = first.inputs;
  give(last, {.layer = add(named, nn::LayerNorm{.epsilon = epsilon}, {in}), .layout = value.layout});
  name_tensors(std::move(tensors));
}

// (x - mean) / sqrt(mean of its squares + epsilon), with or without a gain and a shift.
bool OnnxReader::add_decomposed_norm(const OnnxNode& mean) {
  const OnnxValue value = value_of(mean, 0);
  const std::string& input = mean.inputs.front();
  const auto is_op = [](const OnnxNode* node, const char* op) {
    return node && node->op == op && !node->outputs.empty();
  };
  std::vector<const OnnxNode*> parts = readers_of(mean.outputs.front());
  const OnnxNode *square = nullptr, *quotient = nullptr;
  for (const OnnxNode* centred : parts) {
    if (!is_op(centred, "Sub") || centred->inputs != std::vector{input, mean.outputs.front()}) return false;
  }
  const std::vector<const OnnxNode*> centred = parts;
  for (const OnnxNode* each : centred) {
    for (const OnnxNode* reader : readers_of(each->outputs.front())) {
      const bool squares = (is_op(reader, "Pow") && number_of(*reader, 1) == 2.0f) ||
                           (is_op(reader, "Mul") && reader->inputs == std::vector(2, each->outputs.front()));
      if (squares) square = reader;
      if (is_op(reader, "Div") && reader->inputs[0] == each->outputs.front()) quotient = reader;
      if (!squares && reader != quotient) return false;
    }
  }
  if (!square || !quotient) return false;
  const OnnxNode* variance = only_reader(square->outputs.front());
  if (!is_op(variance, "ReduceMean")) return false;
  const std::size_t rank = value.layout.size();
  if (axes_of(*variance, integers_of(*variance, "axes", 1), rank) != axes_of(mean, integers_of(mean, "axes", 1), rank))
    return false;
  const OnnxNode* sum = only_reader(variance->outputs.front());
  if (!is_op(sum, "Add") || sum->inputs.size() != 2) return false;
  const auto epsilon = number_of(*sum, sum->inputs[0] == variance->outputs.front() ? 1 : 0);
  const OnnxNode* root = only_reader(sum->outputs.front());
  if (!epsilon || !is_op(root, "Sqrt") || only_reader(root->outputs.front()) != quotient) return false;
  parts.insert(parts.end(), {square, variance, sum, root, quotient});

  const std::int64_t channels = shape_of(value).c;
  const auto count = static_cast<std::size_t>(channels);
  const OnnxNode* last = quotient;
  // The tensor of a node behind the last one that has one number for each channel.
  const auto vector_behind = [&](const char* op, float usual) {
    const OnnxNode* next = only_reader(last->outputs.front());
    if (is_op(next, op) && next->inputs.size() == 2) {
      const ForeignTensor* tensor = find_tensor(*next, next->inputs[0] == last->outputs.front() ? 1 : 0);
      if (tensor && is_channel_vector(value, *tensor)) {
        last = next;
        parts.push_back(next);
        return channel_vector(*next, *tensor, channels);
      }
    }
    return make_tensor(mean.outputs.front() + op, {channels}, std::vector<float>(count, usual));
  };
  const ForeignTensor gain = vector_behind("Mul", 1), shift = vector_behind("Add", 0);
  done_.insert(parts.begin(), parts.end());
  give_norm(mean, *last, value, *epsilon, {gain, shift});
  return true;
}

void OnnxReader::add_error_function(const OnnxNode& node) {
  OnnxValue value = value_of(node, 0);
  const OnnxValue given = value;
  values_.at(node.inputs[0]).factor = 1;
  layer_of(node, 0);
  values_.at(node.inputs[0]) = given;
  require(is_close(value.factor, 0.70710678f), node,
          fmt::format("it reads a value times {}, not the root of 1/2: it is no part of a gelu", value.factor));
  value.form = OnnxForm::erf;
  value.factor = 1;
  give(node, std::move(value));
}

// False: no token of the file stands before the others.
bool OnnxReader::add_class_token(const OnnxNode& node) {
  const bool begins = node.inputs.size() == 2 && find_tensor(node, 0) && is_value(node, 1);
  if (!begins) return false;
  const OnnxValue value = value_of(node, 1);
  const ForeignTensor& token = tensor_of(node, 0, "token");
  const Extents axes = axes_of(node, {integer(node, "axis", 1)}, value.layout.size());
  const auto axis = static_cast<std::size_t>(axes[0]);
  const auto channels = channel_axis(value);
  require(channels && is_whole(value.layout[axis], OnnxAxis::pixel, pixels_of(value)), node,
          "it puts a tensor before other axes than the pixels of an image");
  require(token.shape.size() == value.layout.size() && token.shape[axis] == 1 &&
              token.shape[*channels] == shape_of(value).c,
          node, fmt::format("its token is [{}]", fmt::join(token.shape, ", ")));
  const auto one = one_token(token, *channels);
  require(one.has_value(), node, "its samples have tokens that differ");
  const int layer = add(node, nn::ClassToken{}, {layer_of(node, 1)});
  OnnxLayout layout = value.layout;
  layout[axis] = image_layout(1, builder_.shape(layer))[3];
  give(node, {.layer = layer, .layout = std::move(layout)});
  name_tensors({*one});
  return true;
}

}  // namespace dtrain::train
