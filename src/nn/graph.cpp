#include <dtrain/nn/graph.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::nn {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

int window_count(const std::string& node, int size, int kernel, int stride, int pad, bool ceil) {
  const int span = size + 2 * pad - kernel;
  if (kernel < 1 || stride < 1 || pad < 0 || span < 0) {
    throw UsageError(fmt::format("{}: a window of {} with stride {} and pad {} does not fit an input of {}", node,
                                 kernel, stride, pad, size),
                     "use a larger image or a smaller network");
  }
  return (ceil ? (span + stride - 1) / stride : span / stride) + 1;
}

Shape convolved(const std::string& node, const Convolution& c, const Shape& in) {
  if (c.out < 1 || c.groups < 1 || in.c % c.groups != 0 || c.out % c.groups != 0) {
    throw UsageError(
        fmt::format("{}: {} groups do not divide {} input and {} output channels", node, c.groups, in.c, c.out));
  }
  return {c.out, window_count(node, in.h, c.kernel_h, c.stride_h, c.pad_h, false),
          window_count(node, in.w, c.kernel_w, c.stride_w, c.pad_w, false)};
}

Shape pooled(const std::string& node, const Pooling& p, const Shape& in) {
  if (p.global) return {in.c, 1, 1};
  return {in.c, window_count(node, in.h, p.kernel_h, p.stride_h, p.pad_h, p.full),
          window_count(node, in.w, p.kernel_w, p.stride_w, p.pad_w, p.full)};
}

int add_view(std::vector<TensorView>& views, std::int64_t& count, std::string name, std::vector<std::int64_t> shape,
             TensorRole role) {
  std::int64_t size = 1;
  for (std::int64_t extent : shape) size *= extent;
  views.push_back({std::move(name), std::move(shape), role, count, size});
  count += size;
  return static_cast<int>(views.size()) - 1;
}

}  // namespace

const char* layer_kind(const Layer& layer) {
  constexpr const char* names[] = {"input", "convolution", "batch_norm", "activation", "pooling",
                                   "dense", "flatten",     "add",        "dropout",    "softmax_loss"};
  static_assert(std::size(names) == std::variant_size_v<Layer>);
  return names[layer.index()];
}

GraphBuilder::GraphBuilder(std::string graph_name, Shape input, std::string input_name) {
  if (input.c < 1 || input.h < 1 || input.w < 1) {
    throw UsageError(fmt::format("{}: an image of {}x{}x{} has no pixels", graph_name, input.c, input.h, input.w));
  }
  graph_.name = std::move(graph_name);
  graph_.nodes.push_back({std::move(input_name), Input{}, {}, input, {}, {}});
}

int GraphBuilder::add(std::string name, Layer layer, std::vector<int> inputs) {
  const std::size_t expected = std::holds_alternative<Add>(layer) ? 2 : 1;
  if (inputs.size() != expected) {
    throw UsageError(fmt::format("{}: {} takes {} inputs, not {}", name, layer_kind(layer), expected, inputs.size()));
  }
  for (const Node& node : graph_.nodes) {
    if (node.name == name) throw UsageError(fmt::format("{}: two layers have this name", name));
  }
  const Shape in = shape(inputs.front());
  Node node{name, layer, inputs, in, {}, {}};
  const auto parameter = [&](const char* suffix, std::vector<std::int64_t> extents, TensorRole role) {
    node.parameters.push_back(
        add_view(graph_.parameters, graph_.parameter_count, name + suffix, std::move(extents), role));
  };
  const auto statistic = [&](const char* suffix, TensorRole role) {
    node.statistics.push_back(add_view(graph_.statistics, graph_.statistic_count, name + suffix, {in.c}, role));
  };

  std::visit(Overloaded{
                 [&](const Input&) { throw UsageError(fmt::format("{}: a graph has one input", name)); },
                 [&](const Convolution& c) {
                   node.output = convolved(name, c, in);
                   parameter("_weight", {c.out, in.c / c.groups, c.kernel_h, c.kernel_w}, TensorRole::weight);
                   if (c.bias) parameter("_bias", {c.out}, TensorRole::bias);
                 },
                 [&](const BatchNorm&) {
                   parameter("_gamma", {in.c}, TensorRole::gamma);
                   parameter("_beta", {in.c}, TensorRole::beta);
                   statistic("_moving_mean", TensorRole::running_mean);
                   statistic("_moving_var", TensorRole::running_variance);
                 },
                 [&](const Pooling& p) { node.output = pooled(name, p, in); },
                 [&](const Dense& d) {
                   if (d.out < 1) throw UsageError(fmt::format("{}: {} outputs", name, d.out));
                   node.output = {d.out, 1, 1};
                   parameter("_weight", {d.out, in.size()}, TensorRole::weight);
                   if (d.bias) parameter("_bias", {d.out}, TensorRole::bias);
                 },
                 [&](const Flatten&) {
                   node.output = {static_cast<int>(in.size()), 1, 1};
                 },
                 [&](const Add&) {
                   const Shape& other = shape(inputs[1]);
                   if (!(other == in)) {
                     throw UsageError(fmt::format("{}: cannot add {}x{}x{} and {}x{}x{}", name, in.c, in.h, in.w,
                                                  other.c, other.h, other.w));
                   }
                 },
                 [&](const Dropout& d) {
                   if (!(d.p >= 0 && d.p < 1)) throw UsageError(fmt::format("{}: dropout of {}", name, d.p));
                 },
                 [&](const Activation&) {},
                 [&](const SoftmaxLoss&) {},
             },
             layer);
  graph_.nodes.push_back(std::move(node));
  return static_cast<int>(graph_.nodes.size()) - 1;
}

Graph GraphBuilder::finish(int logits, float label_smoothing, std::string name) {
  const Shape& shape_in = shape(logits);
  if (shape_in.h != 1 || shape_in.w != 1 || shape_in.c < 2) {
    throw UsageError(fmt::format("{}: the logits must be a list of at least 2 classes", name));
  }
  add(std::move(name), SoftmaxLoss{label_smoothing}, {logits});
  return std::move(graph_);
}

std::int64_t multiply_adds(const Graph& graph) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    const bool counted = std::holds_alternative<Convolution>(node.layer) || std::holds_alternative<Dense>(node.layer);
    if (!counted) continue;
    const TensorView& weight = graph.parameters[static_cast<std::size_t>(node.parameters[0])];
    total += weight.size * node.output.h * node.output.w;
  }
  return total;
}

}  // namespace dtrain::nn
