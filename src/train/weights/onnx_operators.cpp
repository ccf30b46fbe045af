// One function for each operator of ONNX that a layer of images computes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>

#include "onnx_reader.hpp"

namespace dtrain::train {
namespace {

constexpr std::int64_t kSingleAxisSoftmax = 13;  // the operator set since which a softmax is that of one axis

bool is_near(float a, float b) { return std::fabs(a - b) < 1e-4f; }

// `zeros`: above, left, below, right.
nn::Shape padded(nn::Shape image, const std::array<std::int64_t, 4>& zeros) {
  constexpr std::int64_t kMost = 1 << 20;
  image.h += static_cast<int>(std::min(zeros[0] + zeros[2], kMost));
  image.w += static_cast<int>(std::min(zeros[1] + zeros[3], kMost));
  return image;
}

// Whether the windows of a pooling that rounds up are those of this padding.
bool ends_with_window(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t before,
                      std::int64_t behind) {
  const std::int64_t span = in + before + behind - kernel, even_span = in + 2 * before - kernel;
  return stride >= 1 && behind >= before && span >= 0 && even_span >= 0 &&
         span / stride == (even_span + stride - 1) / stride;
}

}  // namespace

Extents OnnxReader::read_window(const OnnxNode& node, const nn::Shape& in, auto& window) const {
  const auto listed = [&](const char* name, std::size_t count, std::int64_t usual) {
    const auto found = node.attributes.find(name);
    Extents all = found == node.attributes.end() ? Extents() : found->second.integers;
    if (all.empty()) all.assign(count, usual);
    require(all.size() == count, node, fmt::format("its {} has {} numbers, not {}", name, all.size(), count));
    return all;
  };
  const Extents dilations = listed("dilations", 2, 1);
  if constexpr (requires { window.dilation_h; }) {
    window.dilation_h = small(node, dilations[0]);
    window.dilation_w = small(node, dilations[1]);
  } else {
    require(dilations == Extents{1, 1}, node, "its window is dilated, which dtrain has for convolutions alone");
  }
  const Extents kernel = listed("kernel_shape", 2, -1), stride = listed("strides", 2, 1);
  if (kernel[0] != -1) {
    window.kernel_h = small(node, kernel[0]);
    window.kernel_w = small(node, kernel[1]);
  }
  window.stride_h = small(node, stride[0]);
  window.stride_w = small(node, stride[1]);
  Extents pads = listed("pads", 4, 0);
  const auto automatic = node.attributes.find("auto_pad");
  if (automatic != node.attributes.end() && automatic->second.text.starts_with("SAME")) {
    require(window.stride_h >= 1 && window.stride_w >= 1, node, "its stride is below 1");
    const auto same = [](int extent, int kernel_extent, std::int64_t dilation, int step) {
      const std::int64_t steps = (std::int64_t{extent} + step - 1) / step - 1;
      return std::max<std::int64_t>(steps * step + (kernel_extent - 1) * dilation + 1 - extent, 0);
    };
    const std::int64_t rows = same(in.h, window.kernel_h, dilations[0], window.stride_h);
    const std::int64_t columns = same(in.w, window.kernel_w, dilations[1], window.stride_w);
    const bool more_before = automatic->second.text == "SAME_LOWER";
    pads = {rows / 2, columns / 2, rows - rows / 2, columns - columns / 2};
    if (more_before) pads = {pads[2], pads[3], pads[0], pads[1]};
  }
  window.pad_h = small(node, pads[0]);
  window.pad_w = small(node, pads[1]);
  return pads;
}

void OnnxReader::add_convolution(const OnnxNode& node) {
  const auto [in, zeros] = padded_image_of(node, 0);
  require(!value_of(node, 0).pads_lowest, node, "it reads an image with minus infinity around it");
  const ForeignTensor& weight = tensor_of(node, 1, "weight");
  require(weight.shape.size() == 4, node, "its weight is not that of a convolution of images");
  nn::Convolution layer{.out = small(node, weight.shape[0]),
                        .kernel_h = small(node, weight.shape[2]),
                        .kernel_w = small(node, weight.shape[3])};
  Extents pads = read_window(node, padded(builder_.shape(in), zeros), layer);
  for (std::size_t side = 0; side < pads.size(); ++side) pads[side] += zeros[side];
  layer.pad_h = small(node, pads[0]);
  layer.pad_w = small(node, pads[1]);
  layer.extra_h = small(node, pads[2]) - layer.pad_h;
  layer.extra_w = small(node, pads[3]) - layer.pad_w;
  layer.groups = small(node, integer(node, "group", 1));
  const ForeignTensor* bias =
      has_input(node, 2) ? &tensor_of(node, 2, "bias") : bias_behind(node, weight.shape[0], 1, 4);
  layer.bias = bias != nullptr;
  give_image(node, add(node, layer, {in}));
  const Extents wanted = {layer.out, builder_.shape(in).c / layer.groups, layer.kernel_h, layer.kernel_w};
  require(weight.shape == wanted, node,
          fmt::format("its weight is [{}], not [{}]", fmt::join(weight.shape, ", "), fmt::join(wanted, ", ")));
  if (bias) check_bias(node, *bias, layer.out);
  name_tensors(bias ? std::vector{weight, *bias} : std::vector{weight});
}

// `training_mode` is not read: an export in training mode is the same network.
void OnnxReader::add_batch_norm(const OnnxNode& node) {
  const OnnxValue value = value_of(node, 0);
  const int in = layer_of(node, 0);
  require(channel_axis(value) == std::size_t{1}, node, "its input does not have its channels as axis 1");
  std::vector<ForeignTensor> tensors;
  for (std::size_t i = 1; i <= 4; ++i) {
    tensors.push_back(tensor_of(node, i, "tensor"));
    require(tensors.back().shape == Extents{builder_.shape(in).c}, node,
            fmt::format("{} has another number of channels than its input", tensors.back().name));
  }
  const nn::BatchNorm layer{.epsilon = real(node, "epsilon", 1e-5f), .momentum = real(node, "momentum", 0.9f)};
  give(node, {.layer = add(node, layer, {in}), .layout = value.layout});
  name_tensors(std::move(tensors));
}

// x times its sigmoid is one activation, and so is x times its hard sigmoid. A sigmoid at the end is none.
void OnnxReader::add_activation(const OnnxNode& node) {
  using enum nn::ActivationKind;
  const std::map<std::string_view, nn::ActivationKind> kinds = {{"Relu", relu},
                                                                {"Tanh", tanh},
                                                                {"Sigmoid", sigmoid},
                                                                {"Gelu", gelu},
                                                                {"HardSwish", hard_swish},
                                                                {"HardSigmoid", hard_sigmoid}};
  const nn::ActivationKind kind = kinds.at(node.op);
  const auto approximate = node.attributes.find("approximate");
  require(approximate == node.attributes.end() || approximate->second.text == "none", node,
          "gelu is approximated by tanh");
  const OnnxNode* times = only_reader(node.outputs.front());
  const bool gates = (kind == sigmoid || kind == hard_sigmoid) && times && times->op == "Mul" &&
                     times->inputs.size() == 2 && !times->outputs.empty() &&
                     std::ranges::count(times->inputs, node.inputs.front()) == 1;
  if (!gates && kind == sigmoid && is_output(node.outputs.front())) return end_in_sigmoid(node);
  if (!gates) return add_each(node, nn::Activation{kind});
  done_.insert(times);
  const int in = layer_of(node, 0);
  give(*times, {.layer = add(*times, nn::Activation{kind == sigmoid ? silu : hard_swish}, {in}),
                .layout = value_of(node, 0).layout});
}

void OnnxReader::add_hard_sigmoid(const OnnxNode& node) {
  const float alpha = real(node, "alpha", 0.2f), beta = real(node, "beta", 0.5f);
  require(is_near(alpha, 1.0f / 6) && is_near(beta, 0.5f), node,
          fmt::format("it computes {} x + {}, not (x + 3) / 6", alpha, beta));
  add_activation(node);
}

void OnnxReader::add_clip(const OnnxNode& node) {
  const auto bound = [&](const char* name, std::size_t input) -> std::optional<float> {
    if (node.attributes.contains(name)) return real(node, name, 0);
    return number_of(node, input);
  };
  const auto least = bound("min", 1), most = bound("max", 2);
  require(least && *least == 0, node, "it does not cut at 0");
  const bool six = most && *most == 6;
  require(six || !most || *most > 1e30f, node, fmt::format("it cuts at {}, not at 6", most.value_or(0)));
  add_each(node, nn::Activation{six ? nn::ActivationKind::relu6 : nn::ActivationKind::relu});
}

// A maximum of what is nowhere below 0 stays as it is if zeros are added. Its gradient, too: where all of a window is
// 0, whatever the gradient goes to, the ReLU before lets none of it pass.
bool OnnxReader::is_relu(int layer) const {
  const auto* activation = std::get_if<nn::Activation>(&builder_.layer(layer));
  return activation && (activation->kind == nn::ActivationKind::relu || activation->kind == nn::ActivationKind::relu6);
}

// Zeros behind the image alone are those that the last window reads beyond it: pooling that rounds up.
void OnnxReader::add_pooling(const OnnxNode& node) {
  const auto [in, zeros] = padded_image_of(node, 0);
  const nn::Shape image = builder_.shape(in);
  const bool max = node.op == "MaxPool";
  nn::Pooling layer{.kind = max ? nn::PoolingKind::max : nn::PoolingKind::average};
  Extents pads = read_window(node, padded(image, zeros), layer);
  layer.full = integer(node, "ceil_mode", 0) != 0;
  layer.count_include_pad = integer(node, "count_include_pad", 0) != 0;
  const bool are_even = zeros[0] == zeros[2] && zeros[1] == zeros[3];
  if (zeros != std::array<std::int64_t, 4>{}) {  // they count, and what a window reads behind them does not
    const bool lowest = value_of(node, 0).pads_lowest;
    const bool averages = !max && !lowest && are_even && pads[0] == 0 && pads[1] == 0 && !layer.count_include_pad;
    require(averages || (max && (lowest || is_relu(in))), node,
            lowest ? "it averages an image with minus infinity around it"
                   : "zeros around its input count, and dtrain has no such pooling: a maximum pads with numbers below "
                     "all others");
    for (std::size_t side = 0; side < pads.size(); ++side) pads[side] += zeros[side];
    layer.pad_h = small(node, pads[0]);
    layer.pad_w = small(node, pads[1]);
  }
  if (pads[0] != pads[2] || pads[1] != pads[3]) {
    const bool rounds_up = !layer.full && (max || !layer.count_include_pad) &&
                           ends_with_window(image.h, layer.kernel_h, layer.stride_h, pads[0], pads[2]) &&
                           ends_with_window(image.w, layer.kernel_w, layer.stride_w, pads[1], pads[3]);
    require(rounds_up, node, fmt::format("its padding [{}] differs from side to side", fmt::join(pads, ", ")));
    layer.full = true;
  }
  if (zeros != std::array<std::int64_t, 4>{}) layer.count_include_pad = true;
  give_image(node, add(node, layer, {in}));
}

void OnnxReader::add_local_response_norm(const OnnxNode& node) {
  const nn::LocalResponseNorm layer{.alpha = real(node, "alpha", 1e-4f),
                                    .beta = real(node, "beta", 0.75f),
                                    .bias = real(node, "bias", 1),
                                    .size = small(node, integer(node, "size", 0))};
  give_image(node, add(node, layer, {image_of(node, 0)}));
}

void OnnxReader::add_global_pooling(const OnnxNode& node) {
  const bool max = node.op == "GlobalMaxPool";
  const nn::Pooling layer{.kind = max ? nn::PoolingKind::max : nn::PoolingKind::average, .global = true};
  give_image(node, add(node, layer, {image_of(node, 0)}));
}

void OnnxReader::add_sum(const OnnxNode& node) {
  require(node.inputs.size() >= 2, node, "it adds nothing");
  if (node.inputs.size() == 2) {
    for (const std::size_t constant : {1u, 0u}) {
      if (is_value(node, 1 - constant) && !is_value(node, constant)) return add_constant(node, 1 - constant, constant);
    }
  }
  const OnnxLayout layout = value_of(node, 0).layout;
  int sum = layer_of(node, 0);
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    require(
        value_of(node, i).layout == layout, node,
        fmt::format("it adds [{}] and [{}]", shown(extents_of(layout)), shown(extents_of(value_of(node, i).layout))));
    OnnxNode part = node;
    if (i + 1 < node.inputs.size()) {
      part.name = fmt::format("{}_{}", node.outputs.front(), i);
      part.outputs = {part.name};
    }
    sum = add(part, nn::Add{}, {sum, layer_of(node, i)});
  }
  give(node, {.layer = sum, .layout = layout});
}

// By numbers of the file, or each channel by a factor that a layer computes.
void OnnxReader::add_scaling(const OnnxNode& node) {
  require(node.inputs.size() == 2, node, "it takes two inputs");
  const bool divides = node.op == "Div";
  for (const std::size_t constant : {1u, 0u}) {
    if (is_value(node, constant) || !is_value(node, 1 - constant) || (divides && constant == 0)) continue;
    const auto factor = number_of(node, constant);
    if (!factor && !divides) return multiply_constant(node, 1 - constant, tensor_of(node, constant, "factor"));
    require(factor.has_value(), node, "it divides by what is no number");
    OnnxValue value = value_of(node, 1 - constant);
    value.factor *= divides ? 1 / *factor : *factor;
    value.scaled_by = &node;
    return give(node, std::move(value));
  }
  require(!divides, node, "it divides by what is no number");
  if (add_gelu(node)) return;
  const auto is_factor = [&](std::size_t input) { return pixels_of(value_of(node, input)) == 1; };
  const std::size_t factor = is_factor(1) ? 1 : 0;
  require(is_factor(factor), node, "dtrain has no product of two layers, but of the channels by a factor each");
  const OnnxLayout layout = value_of(node, 1 - factor).layout, factors = value_of(node, factor).layout;
  // ONNX aligns the last axes: a list [n, c] multiplies the columns of an image.
  const auto stretches = [](const auto& wide, const auto& narrow) { return narrow.empty() || narrow == wide; };
  require(channel_axis(value_of(node, factor)) == channel_axis(value_of(node, 1 - factor)) &&
              std::ranges::equal(layout, factors, stretches),
          node,
          fmt::format("its factors [{}] are not those of the channels of [{}]", shown(extents_of(factors)),
                      shown(extents_of(layout))));
  const int image = layer_of(node, 1 - factor);
  give(node, {.layer = add(node, nn::Multiply{}, {image, layer_of(node, factor)}), .layout = layout});
}

// x (1 + erf(x / sqrt 2)) / 2, whichever factor the half belongs to.
bool OnnxReader::add_gelu(const OnnxNode& node) {
  for (const std::size_t curve : {0u, 1u}) {
    const OnnxValue share = value_of(node, curve), value = value_of(node, 1 - curve);
    if (share.form != OnnxForm::one_plus_erf || value.form != OnnxForm::layer) continue;
    const bool is_same = share.layer == value.layer && share.layout == value.layout;
    require(is_same, node, "it multiplies an error function by another value");
    give(node, {.layer = add(node, nn::Activation{nn::ActivationKind::gelu}, {value.layer}),
                .layout = value.layout,
                .factor = 2 * share.factor * value.factor,
                .scaled_by = &node});
    return true;
  }
  return false;
}

void OnnxReader::add_concat(const OnnxNode& node) {
  if (node.inputs.size() == 1) return hand_on(node);
  if (add_class_token(node)) return;
  const OnnxLayout layout = value_of(node, 0).layout;
  const Extents axis = axes_of(node, {integer(node, "axis", 1)}, layout.size());
  std::vector<int> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    OnnxLayout each = value_of(node, i).layout;
    require(channel_axis(value_of(node, i)) == static_cast<std::size_t>(axis[0]), node,
            fmt::format("it joins along axis {}, not the channels", axis[0]));
    each[static_cast<std::size_t>(axis[0])] = layout[static_cast<std::size_t>(axis[0])];
    require(each == layout, node, "it joins values of other axes");
    inputs.push_back(layer_of(node, i));
  }
  const int layer = add(node, nn::Concat{}, std::move(inputs));
  OnnxLayout whole = layout;
  whole[static_cast<std::size_t>(axis[0])] = image_layout(1, builder_.shape(layer))[1];
  give(node, {.layer = layer, .layout = std::move(whole)});
}

void OnnxReader::add_dropout(const OnnxNode& node) {
  const float share = has_input(node, 1) ? number_of(node, 1).value_or(0.5f) : real(node, "ratio", 0.5f);
  add_each(node, nn::Dropout{.p = share});
}

void OnnxReader::hand_on(const OnnxNode& node) { give(node, value_of(node, 0)); }

// Whether nothing but other axes or another width of the numbers lies between the value and the output.
bool OnnxReader::is_output(std::string value) const {
  constexpr std::array<std::string_view, 6> kMoves = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"};
  while (value != onnx_.outputs.front()) {
    const OnnxNode* next = only_reader(value);
    const bool moves = next && std::ranges::find(kMoves, next->op) != kMoves.end() && next->outputs.size() == 1;
    if (!moves || next->inputs.front() != value) return false;
    value = next->outputs.front();
  }
  return true;
}

// The loss computes the softmax over the channels. Before operator set 13 it was that of all axes from one on.
void OnnxReader::end_in_softmax(const OnnxNode& node) {
  const OnnxValue& value = value_of(node, 0);
  if (value.form == OnnxForm::scores && node.op == "Softmax") return end_scores(node, value);
  require(is_output(node.outputs.front()), node,
          "dtrain has a softmax in an attention and at the end of a network only");
  const bool joins = onnx_.operator_set < kSingleAxisSoftmax;
  const std::size_t rank = value.layout.size();
  const Extents named = axes_of(node, {integer(node, "axis", joins ? 1 : -1)}, rank);
  const auto axis = static_cast<std::size_t>(named[0]);
  require(is_whole(joined(value.layout, axis, joins ? rank - axis : 1), OnnxAxis::channel, shape_of(value).c), node,
          fmt::format("its axis {} is not that of the classes", axis));
  hand_on(node);
}

// The network judges each class on its own, and the loss of that kind computes the sigmoids.
void OnnxReader::end_in_sigmoid(const OnnxNode& node) {
  if (shape_of(value_of(node, 0)).size() == 1) {
    refuse(node, "it ends in a sigmoid of one number, and dtrain's classifiers have an output for each class",
           "export a network with two outputs or more");
  }
  loss_ = nn::LossKind::sigmoid;
  hand_on(node);
}

const std::vector<OnnxOperator>& onnx_operators() {
  static const std::vector<OnnxOperator> kOperators = {{"Add", &OnnxReader::add_sum},
                                                       {"AveragePool", &OnnxReader::add_pooling},
                                                       {"BatchNormalization", &OnnxReader::add_batch_norm},
                                                       {"Cast", &OnnxReader::cast},
                                                       {"Clip", &OnnxReader::add_clip},
                                                       {"Concat", &OnnxReader::add_concat},
                                                       {"Conv", &OnnxReader::add_convolution},
                                                       {"Div", &OnnxReader::add_scaling},
                                                       {"Dropout", &OnnxReader::add_dropout},
                                                       {"Erf", &OnnxReader::add_error_function},
                                                       {"Expand", &OnnxReader::expand},
                                                       {"Flatten", &OnnxReader::reshape},
                                                       {"Gather", &OnnxReader::gather},
                                                       {"Gelu", &OnnxReader::add_activation},
                                                       {"Gemm", &OnnxReader::add_product},
                                                       {"GlobalAveragePool", &OnnxReader::add_global_pooling},
                                                       {"GlobalMaxPool", &OnnxReader::add_global_pooling},
                                                       {"HardSigmoid", &OnnxReader::add_hard_sigmoid},
                                                       {"HardSwish", &OnnxReader::add_activation},
                                                       {"Identity", &OnnxReader::hand_on},
                                                       {"LRN", &OnnxReader::add_local_response_norm},
                                                       {"LayerNormalization", &OnnxReader::add_layer_norm},
                                                       {"LogSoftmax", &OnnxReader::end_in_softmax},
                                                       {"MatMul", &OnnxReader::add_product},
                                                       {"MaxPool", &OnnxReader::add_pooling},
                                                       {"Mul", &OnnxReader::add_scaling},
                                                       {"Pad", &OnnxReader::pad},
                                                       {"ReduceMean", &OnnxReader::add_mean},
                                                       {"Relu", &OnnxReader::add_activation},
                                                       {"Reshape", &OnnxReader::reshape},
                                                       {"Sigmoid", &OnnxReader::add_activation},
                                                       {"Slice", &OnnxReader::slice},
                                                       {"Softmax", &OnnxReader::end_in_softmax},
                                                       {"Split", &OnnxReader::split},
                                                       {"Squeeze", &OnnxReader::squeeze},
                                                       {"Sum", &OnnxReader::add_sum},
                                                       {"Tanh", &OnnxReader::add_activation},
                                                       {"Tile", &OnnxReader::expand},
                                                       {"Transpose", &OnnxReader::transpose},
                                                       {"Unsqueeze", &OnnxReader::unsqueeze}};
  return kOperators;
}

}  // namespace dtrain::train
