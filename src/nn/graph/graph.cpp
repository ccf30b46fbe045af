#include <dtrain/nn/graph.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include <dtrain/base/error.hpp>

#include "layer_shapes.hpp"

namespace dtrain::nn {
namespace {

std::int64_t checked_size(const std::string& tensor, const std::vector<std::int64_t>& shape) {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) {
    if (extent > kLargestTensor / size) throw UsageError(fmt::format("{}: has too many elements", tensor));
    size *= extent;
  }
  return size;
}

int append(std::vector<TensorView>& views, std::int64_t& count, const std::string& node, const TensorPlan& plan) {
  const std::string name = node + plan.suffix;
  const std::int64_t size = checked_size(name, plan.shape);
  views.push_back({name, plan.shape, plan.role, count, size});
  count += size;
  return static_cast<int>(views.size()) - 1;
}

void require_whitening_of_images(const std::string& node, const Layer& layer, const std::vector<int>& inputs) {
  const auto* convolution = std::get_if<Convolution>(&layer);
  if (!convolution || convolution->initial != InitialWeight::whitening || inputs == std::vector<int>{0}) return;
  throw UsageError(fmt::format("{}: only a convolution of the images can begin by whitening them", node));
}

void require_all_used(const Graph& graph) {
  std::vector<bool> used(graph.nodes.size(), false);
  used.back() = true;
  for (const Node& node : graph.nodes) {
    for (const int input : node.inputs) used[static_cast<std::size_t>(input)] = true;
  }
  const auto unused = std::ranges::find(used, false);
  if (unused == used.end()) return;
  const Node& node = graph.nodes[static_cast<std::size_t>(unused - used.begin())];
  throw UsageError(fmt::format("{}: no layer uses its output", node.name));
}

// Which of a layer's inputs are regions.
bool takes_regions(const Layer& layer, std::size_t which) {
  if (std::holds_alternative<RegionAlign>(layer)) return which == 1;
  if (std::holds_alternative<FoundRegions>(layer)) return which == 0;
  return std::holds_alternative<RegionLoss>(layer) && (which == 2 || which == 5);
}

bool gives_regions(const Layer& layer) {
  return std::holds_alternative<Proposals>(layer) || std::holds_alternative<FoundRegions>(layer);
}

// Regions have no gradient, and some of their numbers are indices of objects: no other value can take their place.
void require_regions_where_taken(const Graph& graph, const Node& node) {
  for (std::size_t which = 0; which < node.inputs.size(); ++which) {
    const Node& input = graph.nodes[static_cast<std::size_t>(node.inputs[which])];
    const bool takes = takes_regions(node.layer, which);
    if (takes == gives_regions(input.layer)) continue;
    if (!takes) {
      throw UsageError(
          fmt::format("{}: {} cannot take the regions of {}", node.name, layer_kind(node.layer), input.name),
          "region_align, found_regions and region_loss take regions");
    }
    throw UsageError(
        fmt::format("{}: takes regions, and {} ({}) gives none", node.name, input.name, layer_kind(input.layer)),
        "proposals and found_regions give regions");
  }
}

// The image that a layer of a detector states.
std::optional<Extent> stated_image(const Layer& layer) {
  const auto image_of = [](const auto& each) -> std::optional<Extent> {
    if constexpr (requires { each.found.image_height; }) {
      return Extent{each.found.image_height, each.found.image_width};
    } else if constexpr (requires { each.image_height; }) {
      return Extent{each.image_height, each.image_width};
    } else {
      return std::nullopt;
    }
  };
  return std::visit(image_of, layer);
}

// True masks are as large as the input: a larger image would be read beyond their end.
void require_image_of_input(const Graph& graph) {
  const Shape& input = graph.input();
  for (const Node& node : graph.nodes) {
    const std::optional<Extent> image = stated_image(node.layer);
    if (!image || (image->height == input.h && image->width == input.w)) continue;
    throw UsageError(fmt::format("{}: is made for images of {}x{}, and the network takes images of {}x{}", node.name,
                                 image->height, image->width, input.h, input.w),
                     fmt::format("say \"image\": [{}, {}] there", input.h, input.w));
  }
}

// The class of a found region says which of its masks counts.
void require_classes_of_loss(const Graph& graph) {
  const auto* const loss = std::get_if<RegionLoss>(&graph.nodes.back().layer);
  if (!loss) return;
  for (const Node& node : graph.nodes) {
    const auto* const regions = std::get_if<FoundRegions>(&node.layer);
    if (!regions || regions->found.classes == loss->found.classes) continue;
    throw UsageError(fmt::format("{}: has {} classes, and {} has {}", node.name, regions->found.classes,
                                 graph.nodes.back().name, loss->found.classes));
  }
}

bool is_loss(const Layer& layer) {
  return std::holds_alternative<SoftmaxLoss>(layer) || std::holds_alternative<DetectionLoss>(layer) ||
         std::holds_alternative<RegionLoss>(layer);
}

}  // namespace

bool has_frozen_weight(const Layer& layer) {
  const auto* convolution = std::get_if<Convolution>(&layer);
  return convolution && convolution->frozen;
}

bool is_held(const Node& node, std::size_t which) {
  if (!node.learns) return true;
  const auto* batch_norm = std::get_if<BatchNorm>(&node.layer);
  return which == 0 && (has_frozen_weight(node.layer) || (batch_norm && batch_norm->fix_gamma));
}

float statistics_momentum(const Node& norm) { return norm.learns ? std::get<BatchNorm>(norm.layer).momentum : 1; }

const char* layer_kind(const Layer& layer) {
  constexpr const char* names[] = {
      "input",        "convolution",  "batch_norm",   "activation",    "pooling",        "dense",
      "flatten",      "add",          "concat",       "multiply",      "dropout",        "scale",
      "layer_norm",   "layer_scale",  "class_token",  "position",      "first_token",    "attention",
      "softmax_loss", "upsample",     "pyramid",      "keep_levels",   "detection_loss", "transposed_convolution",
      "proposals",    "region_align", "keep_regions", "found_regions", "region_loss",    "local_response_norm"};
  static_assert(std::size(names) == std::variant_size_v<Layer>);
  return names[layer.index()];
}

GraphBuilder::GraphBuilder(std::string graph_name, Shape input, std::string input_name) {
  const auto in_range = [](int extent) { return extent >= 1 && extent <= kLargestExtent; };
  if (!in_range(input.c) || !in_range(input.h) || !in_range(input.w) ||
      std::int64_t{input.h} * input.w > kLargestActivation / input.c) {
    throw UsageError(fmt::format("{}: {}x{}x{} is no image", graph_name, input.c, input.h, input.w));
  }
  graph_.name = std::move(graph_name);
  names_.insert(input_name);
  graph_.nodes.push_back({std::move(input_name), Input{}, {}, input, {}, {}});
}

int GraphBuilder::add(std::string name, Layer layer, std::vector<int> inputs) {
  if (is_loss(layer)) throw UsageError(fmt::format("{}: the loss comes last", name));
  return append_node(std::move(name), std::move(layer), std::move(inputs));
}

int GraphBuilder::append_node(std::string name, Layer layer, std::vector<int> inputs) {
  if (!names_.insert(name).second) throw UsageError(fmt::format("{}: two layers have this name", name));
  std::vector<Shape> shapes;
  for (const int input : inputs) shapes.push_back(shape(input));
  require_whitening_of_images(name, layer, inputs);
  Node node{std::move(name), std::move(layer), std::move(inputs), {}, {}, {}};
  node.output = output_shape(node.name, node.layer, shapes);
  require_regions_where_taken(graph_, node);
  for (const TensorPlan& plan : layer_tensors(node.layer, shapes[0])) {
    if (is_statistic(plan.role)) {
      node.statistics.push_back(append(graph_.statistics, graph_.statistic_count, node.name, plan));
    } else {
      node.parameters.push_back(append(graph_.parameters, graph_.parameter_count, node.name, plan));
    }
  }
  graph_.nodes.push_back(std::move(node));
  return static_cast<int>(graph_.nodes.size()) - 1;
}

Graph GraphBuilder::finish(int logits, float label_smoothing, std::string name) {
  return finish(logits, SoftmaxLoss{.label_smoothing = label_smoothing}, std::move(name));
}

Graph GraphBuilder::finish(int logits, SoftmaxLoss loss, std::string name) {
  append_node(std::move(name), std::move(loss), {logits});
  return finish();
}

Graph GraphBuilder::finish(std::vector<int> inputs, DetectionLoss loss, std::string name) {
  append_node(std::move(name), loss, std::move(inputs));
  return finish();
}

Graph GraphBuilder::finish(std::vector<int> inputs, RegionLoss loss, std::string name) {
  append_node(std::move(name), loss, std::move(inputs));
  return finish();
}

Graph GraphBuilder::finish() {
  require_all_used(graph_);
  require_image_of_input(graph_);
  require_classes_of_loss(graph_);
  return std::move(graph_);
}

const SoftmaxLoss& loss_of(const Graph& graph) {
  if (const auto* loss = std::get_if<SoftmaxLoss>(&graph.nodes.back().layer)) return *loss;
  throw UsageError(fmt::format("{} is a detector, whose loss is its own", graph.name));
}

const Detections* detection_of(const Graph& graph) {
  const Layer& last = graph.nodes.back().layer;
  if (const auto* one_stage = std::get_if<DetectionLoss>(&last)) return &one_stage->found;
  const auto* two_stages = std::get_if<RegionLoss>(&last);
  return two_stages ? &two_stages->found : nullptr;
}

int anchor_size(const Graph& graph) {
  const Layer& last = graph.nodes.back().layer;
  if (const auto* one_stage = std::get_if<DetectionLoss>(&last)) return one_stage->anchor_size;
  const auto* two_stages = std::get_if<RegionLoss>(&last);
  return two_stages ? two_stages->anchor_size : 0;
}

void set_score_threshold(Graph& graph, float threshold) {
  for (Node& node : graph.nodes) {
    if (auto* last = std::get_if<DetectionLoss>(&node.layer)) last->found.score_threshold = threshold;
    if (auto* regions = std::get_if<FoundRegions>(&node.layer)) regions->found.score_threshold = threshold;
    if (auto* last = std::get_if<RegionLoss>(&node.layer)) last->found.score_threshold = threshold;
  }
}

std::int64_t result_size(const Graph& graph) {
  const Detections* const detection = detection_of(graph);
  return detection ? detection->result_size() : graph.classes();
}

std::span<const char* const> loss_parts(const Graph& graph) {
  // torchvision's names, without loss_.
  static constexpr const char* kOneStage[] = {"classification", "bbox_regression"};
  static constexpr const char* kTwoStages[] = {"objectness", "rpn_box_reg", "classifier", "box_reg", "mask"};
  const Detections* const detection = detection_of(graph);
  if (!detection) return {};
  if (std::holds_alternative<DetectionLoss>(graph.nodes.back().layer)) return kOneStage;
  return std::span(kTwoStages).first(detection->mask > 0 ? 5 : 4);
}

void set_loss(Graph& graph, SoftmaxLoss loss) {
  Node& node = graph.nodes.back();
  const Layer layer = std::move(loss);
  output_shape(node.name, layer, std::array{node.output});
  node.layer = layer;
}

std::int64_t multiply_adds(const Graph& graph) {
  std::int64_t total = 0;
  for (const Node& node : graph.nodes) {
    const auto* transposed = std::get_if<TransposedConvolution>(&node.layer);
    const bool counted = std::holds_alternative<Convolution>(node.layer) || std::holds_alternative<Dense>(node.layer);
    if (!counted && !transposed) continue;
    const TensorView& weight = graph.parameters[static_cast<std::size_t>(node.parameters[0])];
    const int own =
        transposed ? transposed->stride * transposed->stride : 1;  // of the output's pixels, weights of each
    total += weight.size * node.output.h * node.output.w / own;
  }
  return total;
}

}  // namespace dtrain::nn
