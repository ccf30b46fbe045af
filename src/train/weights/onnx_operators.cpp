// One function for each operator of ONNX that a layer computes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>

#include "onnx_reader.hpp"

namespace dtrain::train {
namespace {

using Extents = std::vector<std::int64_t>;

bool is_near(float a, float b) { return std::fabs(a - b) < 1e-4f; }

// The tensor with its two extents exchanged, where it lies.
ForeignTensor transposed(ForeignTensor tensor) {
  std::swap(tensor.shape[0], tensor.shape[1]);
  std::swap(tensor.strides[0], tensor.strides[1]);
  return tensor;
}

bool is_one_pixel(const nn::Shape& shape) { return shape.h == 1 && shape.w == 1; }

}  // namespace

void OnnxReader::read_window(const OnnxNode& node, const nn::Shape& in, auto& window) const {
  const auto listed = [&](const char* name, std::size_t count, std::int64_t usual) {
    const auto found = node.attributes.find(name);
    Extents all = found == node.attributes.end() ? Extents() : found->second.integers;
    if (all.empty()) all.assign(count, usual);
    require(all.size() == count, node, fmt::format("its {} has {} numbers, not {}", name, all.size(), count));
    return all;
  };
  for (const std::int64_t dilation : listed("dilations", 2, 1)) require(dilation == 1, node, "its window is dilated");
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
    const auto same = [&](int extent, int kernel_extent, int step) {
      const std::int64_t steps = (std::int64_t{extent} + step - 1) / step - 1;
      return std::max<std::int64_t>(steps * step + kernel_extent - extent, 0);
    };
    const std::int64_t rows = same(in.h, window.kernel_h, window.stride_h);
    const std::int64_t columns = same(in.w, window.kernel_w, window.stride_w);
    pads = {rows / 2, columns / 2, rows - rows / 2, columns - columns / 2};
  }
  require(pads[0] == pads[2] && pads[1] == pads[3], node,
          fmt::format("its padding [{}] differs from side to side", fmt::join(pads, ", ")));
  window.pad_h = small(node, pads[0]);
  window.pad_w = small(node, pads[1]);
}

void OnnxReader::add_convolution(const OnnxNode& node) {
  const int in = layer_of(node, 0);
  const ForeignTensor& weight = tensor_of(node, 1, "weight");
  require(weight.shape.size() == 4, node, "its weight is not that of a convolution of images");
  nn::Convolution layer{.out = small(node, weight.shape[0]),
                        .kernel_h = small(node, weight.shape[2]),
                        .kernel_w = small(node, weight.shape[3])};
  read_window(node, builder_.shape(in), layer);
  layer.groups = small(node, integer(node, "group", 1));
  const ForeignTensor* bias = has_input(node, 2) ? &tensor_of(node, 2, "bias") : bias_behind(node, weight.shape[0]);
  layer.bias = bias != nullptr;
  add(node, layer, {in});
  const Extents wanted = {layer.out, builder_.shape(in).c / layer.groups, layer.kernel_h, layer.kernel_w};
  require(weight.shape == wanted, node,
          fmt::format("its weight is [{}], not [{}]", fmt::join(weight.shape, ", "), fmt::join(wanted, ", ")));
  if (bias) check_bias(node, *bias, layer.out);
  name_tensors(bias ? std::vector{weight, *bias} : std::vector{weight});
}

void OnnxReader::add_batch_norm(const OnnxNode& node) {
  const int in = layer_of(node, 0);
  std::vector<ForeignTensor> tensors;
  for (std::size_t i = 1; i <= 4; ++i) {
    tensors.push_back(tensor_of(node, i, "tensor"));
    require(tensors.back().shape == Extents{builder_.shape(in).c}, node,
            fmt::format("{} has another number of channels than its input", tensors.back().name));
  }
  add(node, nn::BatchNorm{.epsilon = real(node, "epsilon", 1e-5f), .momentum = real(node, "momentum", 0.9f)}, {in});
  name_tensors(std::move(tensors));
}

// x times its sigmoid is one activation, and so is x times its hard sigmoid.
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
  const int in = layer_of(node, 0);
  const OnnxNode* times = only_reader(node.outputs.front());
  const bool gates = (kind == sigmoid || kind == hard_sigmoid) && times && times->op == "Mul" &&
                     times->inputs.size() == 2 && !times->outputs.empty() &&
                     std::ranges::count(times->inputs, node.inputs.front()) == 1;
  if (!gates) return add(node, nn::Activation{kind}, {in});
  done_.insert(times);
  add(*times, nn::Activation{kind == sigmoid ? silu : hard_swish}, {in});
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
  add(node, nn::Activation{six ? nn::ActivationKind::relu6 : nn::ActivationKind::relu}, {layer_of(node, 0)});
}

void OnnxReader::add_pooling(const OnnxNode& node) {
  const int in = layer_of(node, 0);
  nn::Pooling layer{.kind = node.op == "MaxPool" ? nn::PoolingKind::max : nn::PoolingKind::average};
  read_window(node, builder_.shape(in), layer);
  layer.full = integer(node, "ceil_mode", 0) != 0;
  layer.count_include_pad = integer(node, "count_include_pad", 0) != 0;
  add(node, layer, {in});
}

void OnnxReader::add_global_pooling(const OnnxNode& node) {
  const bool max = node.op == "GlobalMaxPool";
  add(node, nn::Pooling{.kind = max ? nn::PoolingKind::max : nn::PoolingKind::average, .global = true},
      {layer_of(node, 0)});
}

void OnnxReader::add_mean(const OnnxNode& node) {
  Extents axes = integers_of(node, "axes", 1);
  for (std::int64_t& axis : axes) axis += axis < 0 ? 4 : 0;
  std::ranges::sort(axes);
  require(axes == Extents{2, 3}, node, "it is no mean over the pixels of an image");
  add_global_pooling(node);
}

// Dense, whose weight is [out, in].
void OnnxReader::add_product(const OnnxNode& node) {
  const int in = layer_of(node, 0);
  ForeignTensor weight = tensor_of(node, 1, "weight");
  require(weight.shape.size() == 2, node, "its weight is no matrix");
  const bool general = node.op == "Gemm";
  require(!general || (integer(node, "transA", 0) == 0 && real(node, "alpha", 1) == 1 && real(node, "beta", 1) == 1),
          node, "it scales or turns what it multiplies");
  if (!general || integer(node, "transB", 0) == 0) weight = transposed(weight);
  const std::int64_t values = builder_.shape(in).size();
  require(general || is_one_pixel(builder_.shape(in)), node, "it multiplies each row of an image");
  require(weight.shape[1] == values, node,
          fmt::format("its weight takes {} values, and its input has {}: is the size of the images another one?",
                      weight.shape[1], values));
  const ForeignTensor* bias =
      general && has_input(node, 2) ? &tensor_of(node, 2, "bias") : bias_behind(node, weight.shape[0]);
  if (bias) check_bias(node, *bias, weight.shape[0]);
  add(node, nn::Dense{.out = small(node, weight.shape[0]), .bias = bias != nullptr}, {in});
  name_tensors(bias ? std::vector{weight, *bias} : std::vector{weight});
}

void OnnxReader::add_sum(const OnnxNode& node) {
  require(node.inputs.size() >= 2, node, "it adds nothing");
  int sum = layer_of(node, 0);
  for (std::size_t i = 1; i + 1 < node.inputs.size(); ++i) {
    OnnxNode part{.name = fmt::format("{}_{}", node.outputs.front(), i),
                  .op = node.op,
                  .inputs = {},
                  .outputs = {},
                  .attributes = {}};
    part.outputs.push_back(part.name);
    add(part, nn::Add{}, {sum, layer_of(node, i)});
    sum = last_;
  }
  add(node, nn::Add{}, {sum, layer_of(node, node.inputs.size() - 1)});
}

// By a number, or each channel by a factor that a layer computes.
void OnnxReader::add_scaling(const OnnxNode& node) {
  require(node.inputs.size() == 2, node, "it takes two inputs");
  const bool divides = node.op == "Div";
  for (const std::size_t number : {1u, 0u}) {
    const auto factor = number_of(node, number);
    if (!factor || (divides && number == 0)) continue;
    return add(node, nn::Scale{divides ? 1 / *factor : *factor}, {layer_of(node, 1 - number)});
  }
  require(!divides, node, "it divides by what is no number");
  const bool second_is_factor = is_one_pixel(shape_of(node, 1));
  std::vector<int> inputs = {layer_of(node, 0), layer_of(node, 1)};
  if (!second_is_factor) std::swap(inputs[0], inputs[1]);
  add(node, nn::Multiply{}, std::move(inputs));
}

void OnnxReader::add_concat(const OnnxNode& node) {
  const std::int64_t axis = integer(node, "axis", 1);
  require(axis == 1 || axis == -3, node, fmt::format("it joins along axis {}, not the channels", axis));
  if (node.inputs.size() == 1) return hand_on(node);
  std::vector<int> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) inputs.push_back(layer_of(node, i));
  add(node, nn::Concat{}, std::move(inputs));
}

void OnnxReader::add_flatten(const OnnxNode& node) {
  const nn::Shape in = shape_of(node, 0);
  if (node.op == "Flatten") {
    const std::int64_t axis = integer(node, "axis", 1);
    require(axis == 1 || axis == -3, node, fmt::format("it flattens from axis {} on", axis));
  } else {
    const Extents extents = integers_of(node, "shape", 1);
    // Extents that are not in the file are those of a batch of any size, which PyTorch computes.
    const bool list = extents.empty() || extents.size() == 2;
    const bool same = extents.size() == 4 && Extents{extents[1], extents[2], extents[3]} == Extents{in.c, in.h, in.w};
    const bool pixel = extents.size() == 4 && extents[2] == 1 && extents[3] == 1;
    require(list || same || pixel, node,
            fmt::format("it makes [{}] of {} x {} x {}", fmt::join(extents, ", "), in.c, in.h, in.w));
    if (same) return hand_on(node);
  }
  if (is_one_pixel(in)) return hand_on(node);
  add(node, nn::Flatten{}, {layer_of(node, 0)});
}

void OnnxReader::add_dropout(const OnnxNode& node) {
  const float share = has_input(node, 1) ? number_of(node, 1).value_or(0.5f) : real(node, "ratio", 0.5f);
  add(node, nn::Dropout{.p = share}, {layer_of(node, 0)});
}

void OnnxReader::add_squeeze(const OnnxNode& node) {
  require(is_one_pixel(shape_of(node, 0)), node, "its input is an image of several pixels");
  hand_on(node);
}

// PyTorch writes tensors of equal values once, and names the others by Identity.
void OnnxReader::hand_on(const OnnxNode& node) {
  const std::string& output = node.outputs.front();
  if (const ForeignTensor* tensor = find_tensor(node.inputs.front())) {
    renamed_.push_back(*tensor);
    renamed_.back().name = output;
    constants_[output] = &renamed_.back();
  } else {
    layers_[output] = layer_of(node, 0);
  }
}

void OnnxReader::end_in_softmax(const OnnxNode& node) {
  require(node.outputs.front() == onnx_.outputs.front(), node, "dtrain has a softmax at the end of a network only");
  hand_on(node);
}

const std::vector<OnnxOperator>& onnx_operators() {
  static const std::vector<OnnxOperator> kOperators = {{"Add", &OnnxReader::add_sum},
                                                       {"AveragePool", &OnnxReader::add_pooling},
                                                       {"BatchNormalization", &OnnxReader::add_batch_norm},
                                                       {"Cast", &OnnxReader::hand_on},
                                                       {"Clip", &OnnxReader::add_clip},
                                                       {"Concat", &OnnxReader::add_concat},
                                                       {"Conv", &OnnxReader::add_convolution},
                                                       {"Div", &OnnxReader::add_scaling},
                                                       {"Dropout", &OnnxReader::add_dropout},
                                                       {"Flatten", &OnnxReader::add_flatten},
                                                       {"Gelu", &OnnxReader::add_activation},
                                                       {"Gemm", &OnnxReader::add_product},
                                                       {"GlobalAveragePool", &OnnxReader::add_global_pooling},
                                                       {"GlobalMaxPool", &OnnxReader::add_global_pooling},
                                                       {"HardSigmoid", &OnnxReader::add_hard_sigmoid},
                                                       {"HardSwish", &OnnxReader::add_activation},
                                                       {"Identity", &OnnxReader::hand_on},
                                                       {"MatMul", &OnnxReader::add_product},
                                                       {"MaxPool", &OnnxReader::add_pooling},
                                                       {"Mul", &OnnxReader::add_scaling},
                                                       {"ReduceMean", &OnnxReader::add_mean},
                                                       {"Relu", &OnnxReader::add_activation},
                                                       {"Reshape", &OnnxReader::add_flatten},
                                                       {"Sigmoid", &OnnxReader::add_activation},
                                                       {"Softmax", &OnnxReader::end_in_softmax},
                                                       {"Squeeze", &OnnxReader::add_squeeze},
                                                       {"Sum", &OnnxReader::add_sum},
                                                       {"Tanh", &OnnxReader::add_activation}};
  return kOperators;
}

}  // namespace dtrain::train
