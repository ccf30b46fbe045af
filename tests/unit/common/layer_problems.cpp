#include <string>

#include "layer_cases.hpp"

namespace dtrain::testing {
namespace {

using nn::Activation;
using nn::ActivationKind;
using nn::Add;
using nn::BatchNorm;
using nn::Concat;
using nn::Convolution;
using nn::Dense;
using nn::Dropout;
using nn::Flatten;
using nn::GraphBuilder;
using nn::Layer;
using nn::Multiply;
using nn::Pooling;
using nn::PoolingKind;
using nn::Scale;

// Nothing before it learns, so no gradient goes through it either.
Problem first_layer_frozen() {
  Convolution frozen = square(4, 3, 1, 1);
  frozen.frozen = true;
  GraphBuilder b("first_layer_frozen", kImage);
  const int first = b.add("first", frozen, {b.input()});
  const int second = b.add("second", square(5, 3, 1, 1), {b.add("tanh", Activation{ActivationKind::tanh}, {first})});
  return make_problem(b.finish(b.add("logits", Dense{.out = 7}, {second})), kSamples);
}

void add_convolutions(std::vector<Problem>& cases) {
  cases.push_back(single("convolution_3x3", square(5, 3, 1, 1)));
  cases.push_back(single("convolution_3x3_wide", square(17, 3, 1, 1)));
  cases.push_back(single("convolution_1x1", square(8, 1, 1, 0)));
  cases.push_back(single("convolution_1x1_stride_2", square(8, 1, 2, 0)));
  cases.push_back(single("convolution_3x3_stride_2", square(16, 3, 2, 1)));
  cases.push_back(single("convolution_5x5_unpadded", square(4, 5, 1, 0)));
  cases.push_back(single(
      "convolution_rectangle",
      Convolution{.out = 4, .kernel_h = 5, .kernel_w = 2, .stride_h = 2, .stride_w = 3, .pad_h = 2, .pad_w = 1}));
  Convolution biased = square(4, 3, 1, 1);
  biased.bias = true;
  cases.push_back(single("convolution_bias", biased));
  Convolution grouped = square(4, 3, 1, 1);
  grouped.groups = 2;
  cases.push_back(single("convolution_groups", grouped));
  biased.frozen = true;
  cases.push_back(single("convolution_frozen", biased));
  cases.push_back(first_layer_frozen());
  Convolution depthwise = square(6, 3, 2, 1);
  depthwise.groups = 6;
  cases.push_back(single("convolution_depthwise", depthwise));
  Convolution wide_window = square(6, 5, 2, 2);
  wide_window.groups = 6;
  wide_window.kernel_h = 3;
  wide_window.pad_h = 0;
  cases.push_back(single("convolution_depthwise_3x5_stride_2", wide_window));
  Convolution multiplied = square(12, 3, 1, 1);
  multiplied.groups = 6;
  multiplied.bias = true;
  cases.push_back(single("convolution_depthwise_multiplied", multiplied));
}

Convolution dilated(Convolution layer, int h, int w) {
  layer.dilation_h = h;
  layer.dilation_w = w;
  return layer;
}

void add_dilations(std::vector<Problem>& cases) {
  cases.push_back(single("dilated_3x3", dilated(square(5, 3, 1, 2), 2, 2)));
  const Convolution rectangle{.out = 16, .kernel_h = 3, .kernel_w = 2, .stride_h = 2, .pad_h = 2, .pad_w = 1};
  cases.push_back(single("dilated_rectangle", dilated(rectangle, 2, 3)));
  Convolution depthwise = dilated(square(6, 3, 1, 2), 2, 2), grouped = dilated(square(4, 3, 1, 1), 2, 1);
  depthwise.groups = 6;
  grouped.groups = 2;
  grouped.bias = true;
  cases.push_back(single("dilated_depthwise", depthwise));
  cases.push_back(single("dilated_groups", grouped));
  // As many channels and pixels as own kernels want.
  cases.push_back(wrap("dilated_wide",
                       [](GraphBuilder& b, int x) {
                         x = b.add("wide", square(32, 1, 1, 0), {x});
                         return b.add("middle", dilated(square(32, 3, 1, 1), 2, 2), {x});
                       },
                       0, {3, 12, 12}));
  // The first layer, whose image the cuda backend may load in blocks of pixels.
  GraphBuilder b("dilated_first", {3, 16, 16});
  const int first = b.add("first", dilated(square(8, 5, 2, 2), 2, 2), {b.input()});
  cases.push_back(make_problem(b.finish(b.add("logits", Dense{.out = 7}, {first})), kSamples));
}

// Times four first, so that many values lie beyond six.
int relu6_of_large_values(GraphBuilder& b, int x) {
  const int twice = b.add("twice", Add{}, {x, x});
  return b.add("middle", Activation{ActivationKind::relu6}, {b.add("four_times", Add{}, {twice, twice})});
}

Problem scaled_logits() {
  GraphBuilder b("scaled_logits", kImage);
  const int conv = b.add("conv", square(4, 3, 2, 1), {b.input()});
  const int dense = b.add("dense", Dense{.out = 7}, {b.add("twice", Scale{.factor = 2}, {conv})});
  return make_problem(b.finish(b.add("logits", Scale{.factor = 0.3f}, {dense})), kSamples);
}

// A curve alone, behind a norm, and where it adds a bias itself.
void add_curve(std::vector<Problem>& cases, const std::string& name, ActivationKind kind) {
  cases.push_back(wrap(name, [kind](GraphBuilder& b, int x) {
    const int twice = b.add("twice", Add{}, {x, x});  // so that the curve's tails count, too
    return b.add("middle", Activation{kind}, {twice});
  }));
  cases.push_back(wrap(name + "_after_norm", [kind](GraphBuilder& b, int x) {
    x = b.add("curve", Activation{kind}, {b.add("bn", BatchNorm{}, {x})});
    return b.add("next", square(5, 3, 1, 1), {x});
  }));
  cases.push_back(wrap(name + "_after_bias", [kind](GraphBuilder& b, int x) {
    Convolution biased = square(5, 3, 1, 1);
    biased.bias = true;
    return b.add("curve", Activation{kind}, {b.add("biased", biased, {x})});
  }));
}

void add_elementwise(std::vector<Problem>& cases) {
  cases.push_back(single("batch_norm", BatchNorm{}));
  cases.push_back(single("batch_norm_epsilon_momentum", BatchNorm{.epsilon = 1e-3f, .momentum = 0.7f}));
  cases.push_back(single("batch_norm_fixed_gamma", BatchNorm{.fix_gamma = true}));
  cases.push_back(single("relu", Activation{ActivationKind::relu}));
  cases.push_back(wrap("relu6", relu6_of_large_values));
  cases.push_back(single("tanh", Activation{ActivationKind::tanh}));
  cases.push_back(single("sigmoid", Activation{ActivationKind::sigmoid}));
  add_curve(cases, "gelu", ActivationKind::gelu);
  add_curve(cases, "silu", ActivationKind::silu);
  add_curve(cases, "hard_swish", ActivationKind::hard_swish);
  add_curve(cases, "hard_sigmoid", ActivationKind::hard_sigmoid);
  cases.push_back(single("dropout", Dropout{.p = 0.3f}));
  cases.push_back(single("scale", Scale{.factor = -1.7f}));
  cases.push_back(scaled_logits());
  cases.push_back(single("flatten", Flatten{}));
  cases.push_back(single("dense_bias", Dense{.out = 11}));
  cases.push_back(single("dense_no_bias", Dense{.out = 11, .bias = false}));
}

void add_poolings(std::vector<Problem>& cases) {
  constexpr auto max = PoolingKind::max, average = PoolingKind::average;
  cases.push_back(single("max_pool_2x2", window(max, 2, 2, 0)));
  cases.push_back(single("max_pool_3x3_overlapping", window(max, 3, 2, 1)));
  cases.push_back(single("max_pool_3x3_full", window(max, 3, 2, 0, true)));
  cases.push_back(single("max_pool_2x2_full", window(max, 2, 2, 0, true)));
  cases.push_back(single("average_pool_2x2", window(average, 2, 2, 0)));
  cases.push_back(single("average_pool_3x3_padded", window(average, 3, 2, 1)));
  cases.push_back(single("average_pool_3x3_padded_excluded", window(average, 3, 2, 1, false, false)));
  cases.push_back(single("average_pool_2x2_full", window(average, 2, 2, 0, true)));
  cases.push_back(single("average_pool_2x2_full_excluded", window(average, 2, 2, 0, true, false)));
  cases.push_back(single("average_pool_4x4_full_padded", window(average, 4, 3, 1, true)));
  Pooling rectangle = window(max, 3, 1, 0);
  rectangle.kernel_w = 2;
  rectangle.stride_w = 2;
  cases.push_back(single("max_pool_rectangle", rectangle));
  cases.push_back(single("global_average_pool", Pooling{.kind = average, .global = true}));
  const Layer largest_of_all = Pooling{.kind = max, .global = true};
  cases.push_back(single("global_max_pool", largest_of_all));
  cases.push_back(wrap("global_max_pool_of_many",
                       [&](GraphBuilder& b, int x) { return b.add("middle", largest_of_all, {x}); }, 0, {3, 19, 17}));
}

int convolution_norm(GraphBuilder& b, const std::string& name, int out, int stride, int x) {
  x = b.add(name + "_conv", square(out, 3, stride, 1), {x});
  return b.add(name + "_bn", BatchNorm{}, {x});
}

int relu(GraphBuilder& b, const std::string& name, int x) { return b.add(name + "_relu", Activation{}, {x}); }

int convolution_norm_relu(GraphBuilder& b, int x) { return relu(b, "a", convolution_norm(b, "a", 16, 1, x)); }

// How networks for large images begin; two layers read what the pooling leaves.
int norm_relu_max_pool(GraphBuilder& b, int x, const Pooling& pooling) {
  x = b.add("pool", pooling, {convolution_norm_relu(b, x)});
  return b.add("sum", Add{}, {b.add("left", square(16, 1, 1, 0), {x}), x});
}

// He et al. 2015: the sum is taken before the last ReLU.
int residual_v1(GraphBuilder& b, int x) {
  x = convolution_norm_relu(b, x);
  const int left = convolution_norm(b, "c", 16, 1, relu(b, "b", convolution_norm(b, "b", 16, 1, x)));
  return relu(b, "sum", b.add("sum", Add{}, {left, x}));
}

// The same where the shape changes: the shortcut has a convolution and a norm of its own.
int projection_v1(GraphBuilder& b, int x) {
  x = convolution_norm_relu(b, x);
  const int left = convolution_norm(b, "c", 12, 1, relu(b, "b", convolution_norm(b, "b", 12, 2, x)));
  const int shortcut = b.add("shortcut_bn", BatchNorm{}, {b.add("shortcut", square(12, 1, 2, 0), {x})});
  return relu(b, "sum", b.add("sum", Add{}, {left, shortcut}));
}

// He et al. 2016: normalisation and ReLU first; the strided 1x1 shortcut reads what the first convolution reads.
int residual_v2(GraphBuilder& b, int x) {
  const int start = relu(b, "start", b.add("start_bn", BatchNorm{}, {x}));
  int left = b.add("left1", square(8, 3, 2, 1), {start});
  left = relu(b, "left", b.add("left_bn", BatchNorm{}, {left}));
  left = b.add("left2", square(8, 3, 1, 1), {left});
  const int shortcut = b.add("shortcut", square(8, 1, 2, 0), {start});
  return b.add("sum", Add{}, {left, shortcut});
}

int separable(GraphBuilder& b, int x) {
  Convolution depthwise = square(6, 3, 1, 1);
  depthwise.groups = 6;
  x = b.add("depthwise", depthwise, {x});
  x = relu(b, "depthwise", b.add("depthwise_bn", BatchNorm{}, {x}));
  x = b.add("pointwise", square(10, 1, 1, 0), {x});
  return b.add("pointwise_relu6", Activation{ActivationKind::relu6}, {b.add("pointwise_bn", BatchNorm{}, {x})});
}

// oneDNN's depthwise kernel declines this shape; what it falls back on pads each group's weights to 16x16.
int depthwise_on_2x2_pixels(GraphBuilder& b, int x) {
  Convolution depthwise = square(32, 3, 1, 1);
  depthwise.groups = 32;
  x = b.add("pool", window(PoolingKind::average, 2, 2, 0), {b.add("widen", square(32, 1, 1, 0), {x})});
  return b.add("depthwise", depthwise, {x});
}

int bottleneck(GraphBuilder& b, int x) {
  int left = b.add("down", square(3, 1, 1, 0), {x});
  left = relu(b, "down", b.add("down_bn", BatchNorm{}, {left}));
  left = relu(b, "middle", convolution_norm(b, "middle", 3, 1, left));
  left = b.add("up_bn", BatchNorm{}, {b.add("up", square(6, 1, 1, 0), {left})});
  return relu(b, "sum", b.add("sum", Add{}, {x, left}));
}

// Huang et al. 2017: each layer reads the channels of all before it.
int dense_block(GraphBuilder& b, int x) {
  for (const char* const name : {"one", "two", "three"}) {
    const int wide = convolution_norm(b, name, 8, 1, x);
    x = b.add(std::string(name) + "_concat", Concat{}, {x, relu(b, name, wide)});
  }
  return x;
}

// Branches of 3, 6 and 16 channels, the first of pixels that no weight moves, the second twice.
int branches(GraphBuilder& b, int x) {
  const int wide = b.add("wide", square(16, 1, 1, 0), {x});
  return b.add("concat", Concat{}, {b.input(), x, wide, x});
}

// Channels that fill whole vectors.
int even_branches(GraphBuilder& b, int x) {
  const int wide = b.add("wide", square(16, 1, 1, 0), {x}), narrow = b.add("narrow", square(8, 3, 1, 1), {x});
  return b.add("concat", Concat{}, {wide, narrow, wide});
}

// Hu et al. 2018.
int squeeze_excite(GraphBuilder& b, int x) {
  Convolution squeeze = square(3, 1, 1, 0), excite = square(6, 1, 1, 0);
  squeeze.bias = excite.bias = true;
  int factors = b.add("pool", Pooling{.kind = PoolingKind::average, .global = true}, {x});
  factors = relu(b, "squeeze", b.add("squeeze", squeeze, {factors}));
  factors = b.add("gate", Activation{ActivationKind::hard_sigmoid}, {b.add("excite", excite, {factors})});
  return b.add("multiply", Multiply{}, {x, factors});
}

int squeeze_excite_of_many(GraphBuilder& b, int x) {
  Convolution excite = square(24, 1, 1, 0);
  x = b.add("expand_silu", Activation{ActivationKind::silu}, {convolution_norm(b, "expand", 24, 2, x)});
  const int pooled = b.add("pool", Pooling{.kind = PoolingKind::average, .global = true}, {x});
  const int gate = b.add("gate", Activation{ActivationKind::sigmoid}, {b.add("excite", excite, {pooled})});
  return b.add("project_bn", BatchNorm{},
               {b.add("project", square(6, 1, 1, 0), {b.add("multiply", Multiply{}, {x, gate})})});
}

void add_blocks(std::vector<Problem>& cases) {
  cases.push_back(wrap("dense_block", dense_block));
  cases.push_back(wrap("branches", branches));
  cases.push_back(wrap("even_branches", even_branches));
  cases.push_back(wrap("squeeze_excite", squeeze_excite));
  cases.push_back(wrap("squeeze_excite_of_many", squeeze_excite_of_many));
  cases.push_back(wrap("add_to_itself", [](GraphBuilder& b, int x) { return b.add("twice", Add{}, {x, x}); }));
  cases.push_back(wrap("three_consumers", [](GraphBuilder& b, int x) {
    const int tanh = b.add("tanh", Activation{ActivationKind::tanh}, {x});
    const int sigmoid = b.add("sigmoid", Activation{ActivationKind::sigmoid}, {x});
    return b.add("sum2", Add{}, {b.add("sum1", Add{}, {tanh, x}), sigmoid});
  }));
  cases.push_back(wrap("convolution_norm_relu", convolution_norm_relu));
  for (const Pooling& pooling : {window(PoolingKind::max, 3, 2, 1), window(PoolingKind::max, 2, 2, 0)}) {
    cases.push_back(wrap("norm_relu_max_pool_" + std::to_string(pooling.kernel_h),
                         [pooling](GraphBuilder& b, int x) { return norm_relu_max_pool(b, x, pooling); }));
  }
  cases.push_back(wrap("residual_v1", residual_v1));
  cases.push_back(wrap("projection_v1", projection_v1));
  cases.push_back(wrap("residual_v2", residual_v2));
  cases.push_back(wrap("separable", separable));
  cases.push_back(wrap("bottleneck", bottleneck));
  cases.push_back(wrap("depthwise_on_2x2_pixels", depthwise_on_2x2_pixels, 0, {3, 4, 4}));
  cases.push_back(wrap("norm_of_single_pixels", [](GraphBuilder& b, int x) {
    return b.add("bn", BatchNorm{}, {b.add("pool", Pooling{.kind = PoolingKind::average, .global = true}, {x})});
  }));
  cases.push_back(wrap("norm_after_dense", [](GraphBuilder& b, int x) {
    return relu(b, "bn", b.add("bn", BatchNorm{}, {b.add("dense", Dense{.out = 9, .bias = false}, {x})}));
  }));
  cases.push_back(wrap("dropout_after_dense", [](GraphBuilder& b, int x) {
    return b.add("drop", Dropout{}, {relu(b, "dense", b.add("dense", Dense{.out = 13}, {x}))});
  }));
  cases.push_back(wrap("label_smoothing", convolution_norm_relu, 0.1f));
  cases.push_back(wrap("many_classes", convolution_norm_relu, 0.1f, kImage, 203));
  cases.push_back(wrap("one_channel_image", convolution_norm_relu, 0, {1, 8, 8}));
}

// Norms with each kind of tail, and layers that learn before them, behind them or both.
void add_frozen_layers(std::vector<Problem>& cases) {
  const auto pooled = [](GraphBuilder& b, int x) {
    return norm_relu_max_pool(b, x, window(PoolingKind::max, 2, 2, 0));
  };
  cases.push_back(frozen(wrap("f", convolution_norm_relu), "frozen_norm_relu", "*_bn"));
  cases.push_back(frozen(wrap("f", pooled), "frozen_norm_relu_max_pool", "a_*"));
  cases.push_back(frozen(wrap("f", residual_v1), "frozen_residual_v1", "c_*"));
  cases.push_back(frozen(wrap("f", projection_v1), "frozen_projection_v1", "*_bn,c_conv"));
  cases.push_back(frozen(wrap("f", bottleneck), "frozen_bottleneck", "middle*,up*"));
  cases.push_back(frozen(wrap("f", residual_v2), "frozen_backbone", "backbone"));
}

// Every kind of loss, each with what changes its terms, half of them on samples of two labels.
void add_losses(std::vector<Problem>& cases) {
  using nn::LossKind;
  const std::vector<float> weights = {0.5f, 2, 0, 1, 3, 0.25f, 1.5f};
  const std::pair<const char*, nn::SoftmaxLoss> losses[] = {
      {"loss_weighted", {.label_smoothing = 0.1f, .class_weights = weights}},
      {"loss_focal", {.focal_gamma = 2}},
      {"loss_focal_weighted", {.label_smoothing = 0.2f, .focal_gamma = 0.5f, .class_weights = weights}},
      {"loss_sigmoid", {.kind = LossKind::sigmoid}},
      {"loss_sigmoid_smoothed", {.label_smoothing = 0.1f, .kind = LossKind::sigmoid, .class_weights = weights}},
      {"loss_sigmoid_focal", {.label_smoothing = 0.1f, .kind = LossKind::sigmoid, .focal_gamma = 2}},
      {"loss_sigmoid_threshold", {.kind = LossKind::sigmoid, .target_threshold = 0.25f}}};
  for (const auto& [name, loss] : losses) {
    for (const bool mixed : {false, true}) {
      Problem problem = wrap(name + std::string(mixed ? "_mixed" : ""), convolution_norm_relu);
      nn::set_loss(problem.graph, loss);
      cases.push_back(mixed ? with_two_labels(std::move(problem)) : std::move(problem));
    }
  }
}

// No convolution at all, and a batch norm right on the pixels, as MXNet's resnet v2 begins.
Problem norm_of_pixels() {
  GraphBuilder b("norm_of_pixels", kImage);
  const int bn = b.add("bn_data", BatchNorm{.fix_gamma = true}, {b.input()});
  return make_problem(b.finish(b.add("logits", Dense{.out = 4}, {bn})), kSamples);
}

}  // namespace

std::vector<Problem> layer_problems() {
  std::vector<Problem> cases;
  add_convolutions(cases);
  add_dilations(cases);
  add_elementwise(cases);
  add_poolings(cases);
  add_blocks(cases);
  add_frozen_layers(cases);
  add_losses(cases);
  for (Problem& problem : transformer_problems()) cases.push_back(std::move(problem));
  cases.push_back(norm_of_pixels());
  return cases;
}

}  // namespace dtrain::testing
