// Feature pyramids, one-stage detectors, and what a detector's model takes and gives.
#include <algorithm>
#include <array>
#include <variant>

#include <dtrain/backend/detection.hpp>

#include "onnx_boxes.hpp"
#include "onnx_graph.hpp"

namespace dtrain::train::onnx {
namespace {

constexpr const char* kSizes = "sizes";
constexpr const char* kBoxes = "boxes";
constexpr const char* kScores = "scores";
constexpr const char* kLabels = "labels";
constexpr const char* kMasks = "masks";

template <typename... Kinds>
bool is_one_of(const nn::Layer& layer) {
  return (std::holds_alternative<Kinds>(layer) || ...);
}

// Layers that compute the levels of a pyramid, or regions, one by one, and those that end with them.
bool takes_levels(const nn::Layer& layer) {
  return is_one_of<nn::Convolution, nn::Activation, nn::KeepLevels, nn::Proposals, nn::RegionAlign, nn::DetectionLoss,
                   nn::RegionLoss>(layer);
}
bool takes_region_values(const nn::Layer& layer) {
  return is_one_of<nn::Convolution, nn::Activation, nn::KeepRegions, nn::TransposedConvolution, nn::FoundRegions,
                   nn::RegionLoss>(layer);
}
bool takes_regions(const nn::Layer& layer) {
  return is_one_of<nn::RegionAlign, nn::FoundRegions, nn::RegionLoss>(layer);
}

// Whether it sees of one level or region alone where zeros lie between them.
bool sees_one_part(const nn::Convolution& layer, bool is_apart) {
  const int kernel = std::max(layer.kernel_h, layer.kernel_w);
  const bool keeps_size = layer.stride_h == 1 && layer.stride_w == 1 && 2 * layer.pad_h + 1 == layer.kernel_h &&
                          2 * layer.pad_w + 1 == layer.kernel_w;
  return layer.is_plain() && keeps_size && (kernel == 1 || (kernel == 3 && is_apart));
}

}  // namespace

void OnnxGraph::require_known_use(const nn::Node& each) const {
  for (std::size_t k = 0; k < each.inputs.size(); ++k) {
    const Value& in = input_of(each, k);
    const bool are_levels = !in.levels.empty();
    if (!are_levels && !in.of_regions) continue;
    const auto* convolution = std::get_if<nn::Convolution>(&each.layer);
    const bool is_known = are_levels        ? takes_levels(each.layer)
                          : in.name.empty() ? takes_regions(each.layer)
                                            : takes_region_values(each.layer);
    if (is_known && (!convolution || sees_one_part(*convolution, in.is_apart))) continue;
    throw UsageError(fmt::format("{}: ONNX has no such layer for the levels of a pyramid or for regions", each.name),
                     "export it as safetensors");
  }
}

void OnnxGraph::take_detector_names() {
  for (const char* const name : {kSizes, kBoxes, kScores, kLabels, kMasks}) new_name(name);
}

void OnnxGraph::read_picture_sizes() {
  set_scope(kSizes);
  const std::string edges = part("Gather", {kSizes, numbers({1, 0, 1, 0})}, {integer("axis", 1)});
  limits_ = with_axis(*this, part("Cast", {edges}, {integer("to", float32)}), 1);
}

void OnnxGraph::add_zeros_outside(const std::string& pixels, const std::string& result) {
  const nn::Shape& image = graph_.input();
  const auto is_inside = [&](std::int64_t which, std::int64_t h, std::int64_t w) {
    const std::string size = part("Reshape", {slice(*this, kSizes, 1, which, which + 1), numbers({-1, 1, 1, 1})});
    const std::array<std::int64_t, 4> extents{1, 1, h, w};
    return part("Less", {counted(h * w, extents), size});
  };
  const std::string both = part("And", {is_inside(0, image.h, 1), is_inside(1, 1, image.w)});
  add_output("Where", {both, pixels, number(0.0f)}, result, {});
}

// Each pixel is the nearest one of the smaller value, found in whole numbers.
Value OnnxGraph::add_upsample(const nn::Node& each) {
  const nn::Shape& from = graph_.nodes[static_cast<std::size_t>(each.inputs[0])].output;
  const auto nearest = [&](const char* ending, std::int64_t in, std::int64_t out) {
    std::vector<std::int64_t> places(static_cast<std::size_t>(out));
    for (std::int64_t at = 0; at < out; ++at) places[static_cast<std::size_t>(at)] = at * in / out;
    return add_integers(each.name + ending, std::span<const std::int64_t>(&out, 1), places);
  };
  const std::string rows =
      part("Gather", {input_of(each).name, nearest("_rows", from.h, each.output.h)}, {integer("axis", 2)});
  return add_node("Gather", {rows, nearest("_columns", from.w, each.output.w)}, output_name(each), false,
                  {integer("axis", 3)});
}

Value OnnxGraph::add_pyramid(const nn::Node& each) const {
  Value value{.is_apart = true};
  for (std::size_t level = 0; level < each.inputs.size(); ++level) value.levels.push_back(input_of(each, level).name);
  return value;
}

Value OnnxGraph::kept_apart(const nn::Node& each) const {
  Value value = input_of(each);
  value.is_apart = true;
  return value;
}

Value OnnxGraph::add_transposed(const nn::Node& each, const nn::TransposedConvolution& layer) {
  std::vector<std::string> inputs = {spatial(input_of(each)).name};
  for (int index : each.parameters) inputs.push_back(add_tensor(parameter(index), state_.parameters));
  return add_node(
      "ConvTranspose", inputs, output_name(each), false,
      {integers("kernel_shape", {layer.stride, layer.stride}), integers("strides", {layer.stride, layer.stride})});
}

std::string OnnxGraph::anchor_values(const std::string& level, std::int64_t width) {
  return part("Reshape", {part("Transpose", {level}, {integers("perm", {0, 2, 3, 1})}),
                          width == 1 ? numbers({0, -1}) : numbers({0, -1, width})});
}

std::string OnnxGraph::level_anchors(const nn::Node& each, const backend::AnchorSet& anchors, std::size_t level) {
  std::vector<float> edges;
  const auto begin = static_cast<std::size_t>(anchors.level_begins[level]),
             end = static_cast<std::size_t>(anchors.level_begins[level + 1]);
  for (std::size_t i = begin; i < end; ++i) {
    const nn::Box& box = anchors.boxes[i];
    edges.insert(edges.end(), {box.left, box.top, box.right, box.bottom});
  }
  const std::array<std::int64_t, 2> extents{static_cast<std::int64_t>(end - begin), 4};
  return add_floats(fmt::format("{}_anchors_level{}", each.name, level), extents, edges);
}

Value OnnxGraph::add_objects(const nn::Node& each, const nn::DetectionLoss& layer) {
  const backend::AnchorSet anchors = backend::anchors_of(layer);
  const std::int64_t classes = layer.found.classes;
  std::vector<std::string> logits, labels, codes, boxes;
  std::int64_t candidates = 0;
  for (std::size_t level = 0; level + 1 < anchors.level_begins.size(); ++level) {
    const std::int64_t all = (anchors.level_begins[level + 1] - anchors.level_begins[level]) * classes;
    const std::int64_t count = std::min<std::int64_t>(layer.candidates, all);
    candidates += count;
    const Largest best = largest(anchor_values(input_of(each, 0).levels[level], 1), count);
    const std::string anchor = part("Div", {best.places, number(classes)});
    logits.push_back(best.values);
    labels.push_back(part("Mod", {best.places, number(classes)}));
    codes.push_back(rows_at(*this, anchor_values(input_of(each, 1).levels[level], 4), anchor));
    boxes.push_back(part("Gather", {level_anchors(each, anchors, level), anchor}));
  }
  const auto joined = [&](const std::vector<std::string>& parts) {
    return part("Concat", parts, {integer("axis", 1)});
  };
  const std::string label = joined(labels), scores = part("Sigmoid", {joined(logits)});
  const std::string found = clipped_boxes(*this, decoded_boxes(*this, joined(boxes), joined(codes)), limits_);
  const std::string kept = without_doubles(
      *this, found, by_kind(*this, scores, label, classes, 0),
      {.most = layer.found.detections, .overlap = layer.found.overlap_threshold, .limit = layer.found.score_threshold});
  const std::int64_t count = std::min<std::int64_t>(layer.found.detections, candidates);
  const Largest best = largest(part("ReduceMax", {kept}, {integers("axes", {1}), integer("keepdims", 0)}), count);
  found_ = {.boxes = rows_at(*this, found, best.places),
            .are_there = part("Greater", {best.values, number(0.0f)}),
            .scores = best.values,
            .labels = part("GatherElements", {label, best.places}, {integer("axis", 1)}),
            .count = count};
  return {};
}

// The sizes may be left out: pictures fill their images then. Rows without an object are 0.
ProtoMessage OnnxGraph::write_detector() {
  const nn::Shape& image = graph_.input();
  add_usual_value(kSizes, std::array<std::int64_t, 2>{1, 2}, std::array<std::int64_t, 2>{image.h, image.w});
  message_.message(GraphField::input, value_info(kSizes, {2}, int64, "one_or_n"));
  const std::string in_boxes = with_axis(*this, found_.are_there, 2);
  add_output("Where", {in_boxes, found_.boxes, number(0.0f)}, kBoxes, {});
  add_output("Where", {found_.are_there, found_.scores, number(0.0f)}, kScores, {});
  add_output("Where", {found_.are_there, found_.labels, number(std::int64_t{0})}, kLabels, {});
  message_.message(GraphField::output, value_info(kBoxes, {found_.count, 4}));
  message_.message(GraphField::output, value_info(kScores, {found_.count}));
  message_.message(GraphField::output, value_info(kLabels, {found_.count}, int64));
  if (!masks_.empty()) {
    const std::int64_t points = nn::detection_of(graph_)->mask;
    add_output("Where", {with_axis(*this, in_boxes, 3), masks_, number(0.0f)}, kMasks, {});
    message_.message(GraphField::output, value_info(kMasks, {found_.count, points, points}));
  }
  return std::move(message_);
}

}  // namespace dtrain::train::onnx
