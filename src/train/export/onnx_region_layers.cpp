// The two stages of a detector: regions that are proposed, looked into, and found to show an object.
#include <algorithm>
#include <array>

#include <dtrain/backend/detection.hpp>

#include "onnx_boxes.hpp"
#include "onnx_graph.hpp"

namespace dtrain::train::onnx {
namespace {

// Logits are above kLeast; what is left out gets kGone.
constexpr float kLeast = -1e37f, kGone = -3e38f;

}  // namespace

Value OnnxGraph::add_proposals(const nn::Node& each, const nn::Proposals& layer) {
  const backend::AnchorSet anchors = backend::anchors_of(layer);
  const auto levels = static_cast<std::int64_t>(anchors.level_begins.size()) - 1;
  std::vector<std::string> logits, codes, from;
  std::vector<std::int64_t> level_of;
  for (std::size_t level = 0; level < static_cast<std::size_t>(levels); ++level) {
    const std::int64_t all = anchors.level_begins[level + 1] - anchors.level_begins[level];
    const std::int64_t count = std::min<std::int64_t>(layer.candidates, all);
    const Largest best = largest(anchor_values(input_of(each, 0).levels[level], 1), count);
    logits.push_back(best.values);
    codes.push_back(rows_at(*this, anchor_values(input_of(each, 1).levels[level], 4), best.places));
    from.push_back(part("Gather", {level_anchors(each, anchors, level), best.places}));
    level_of.insert(level_of.end(), static_cast<std::size_t>(count), static_cast<std::int64_t>(level));
  }
  const auto joined = [&](const std::vector<std::string>& parts) {
    return part("Concat", parts, {integer("axis", 1)});
  };
  const std::string boxes = clipped_boxes(*this, decoded_boxes(*this, joined(from), joined(codes)), limits_);
  const std::string large = are_large(*this, boxes, backend::kSmallestRegion);
  const std::string scores = part("Where", {large, joined(logits), number(kGone)});
  const std::array<std::int64_t, 2> extents{1, std::ssize(level_of)};
  const std::string kinds = add_integers(each.name + "_levels", extents, level_of);
  const std::string kept =
      without_doubles(*this, boxes, by_kind(*this, scores, kinds, levels, kGone),
                      {.most = layer.regions, .overlap = layer.overlap_threshold, .limit = kLeast, .gone = kGone});
  const std::int64_t count = std::min<std::int64_t>(layer.regions, std::ssize(level_of));
  const Largest best = largest(part("ReduceMax", {kept}, {integers("axes", {1}), integer("keepdims", 0)}), count);
  const std::string are_there = part("Greater", {best.values, number(kLeast)});
  const std::string proposed = rows_at(*this, boxes, best.places);
  regions_[std::ssize(values_)] = {.boxes = part("Where", {with_axis(*this, are_there, 2), proposed, number(0.0f)}),
                                   .are_there = are_there,
                                   .scores = {},
                                   .labels = {},
                                   .count = count};
  return {.of_regions = true};
}

// Each region is looked up in its own level; the order of the regions is restored from the places that they had.
Value OnnxGraph::add_region_align(const nn::Node& each, const nn::RegionAlign& layer) {
  constexpr std::int64_t kSamples = 2;
  const OnnxRegions& regions = regions_.at(each.inputs[1]);
  const std::vector<backend::RegionLevel> levels = backend::region_levels(layer);
  const std::string boxes = part("Reshape", {regions.boxes, numbers({-1, 4})});
  const auto count_to = [&](const std::string& of) {
    const std::string count = part("Gather", {part("Shape", {of}), number(std::int64_t{0})});
    return part("Range", {number(std::int64_t{0}), count, number(std::int64_t{1})});
  };
  const std::string pictures = part(
      "Reshape",
      {part("Expand", {with_axis(*this, count_to(regions.boxes), 1), numbers({1, regions.count})}), numbers({-1})});
  const std::string area =
      part("ReduceProd", {box_sizes(*this, boxes)}, {integers("axes", {-1}), integer("keepdims", 1)});
  std::vector<float> sides;
  for (std::size_t level = 1; level < levels.size(); ++level) sides.push_back(levels[level].from_side);
  const std::string is_from = part("GreaterOrEqual", {part("Sqrt", {area}), numbers(sides)});
  const std::string level_of =
      part("ReduceSum", {part("Cast", {is_from}, {integer("to", int64)}), numbers({1})}, {integer("keepdims", 0)});
  std::vector<std::string> looked_up, places;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const std::string is_here = part("Equal", {level_of, number(static_cast<std::int64_t>(level))});
    const std::string here = part("Reshape", {part("NonZero", {is_here}), numbers({-1})});
    places.push_back(here);
    looked_up.push_back(part(
        "RoiAlign", {input_of(each, 0).levels[level], part("Gather", {boxes, here}), part("Gather", {pictures, here})},
        {integer("output_height", layer.size), integer("output_width", layer.size), integer("sampling_ratio", kSamples),
         real("spatial_scale", levels[level].scale)}));
  }
  const ProtoMessage first = integer("axis", 0);
  const std::string order = part("Concat", places, {first});
  const std::string back = part("ScatterElements", {order, order, count_to(order)}, {first});
  const std::string all = part("Concat", looked_up, {first});
  Value value = add_node("Gather", {all, back}, output_name(each), false, {first});
  if (!layer.apart) value = flat(value, each.name + "_rows");
  value.of_regions = true;
  value.is_apart = layer.apart;
  return value;
}

// A box for each class of each region: boxes of two classes never double each other.
Value OnnxGraph::add_found_regions(const nn::Node& each, const nn::FoundRegions& layer) {
  const OnnxRegions& regions = regions_.at(each.inputs[0]);
  const nn::Detections& found = layer.found;
  const std::int64_t classes = found.classes, count = regions.count;
  const auto shaped = [&](const std::string& of, std::initializer_list<std::int64_t> extents) {
    return part("Reshape", {of, numbers(extents)});
  };
  const auto turned = [&](const std::string& of, std::initializer_list<std::int64_t> order) {
    return part("Transpose", {of}, {integers("perm", order)});
  };
  const std::string shares = part("Softmax", {input_of(each, 1).name}, {integer("axis", 1)});
  const std::string shown = slice(*this, shaped(shares, {-1, count, classes + 1}), 2, 1, kToEnd);
  const std::string codes = slice(*this, shaped(input_of(each, 2).name, {-1, count, classes + 1, 4}), 2, 1, kToEnd);
  const std::array<float, 4> factors{backend::kCentreFactor, backend::kCentreFactor, backend::kSizeFactor,
                                     backend::kSizeFactor};
  const std::string boxes = clipped_boxes(
      *this, decoded_boxes(*this, with_axis(*this, regions.boxes, 2), part("Div", {codes, numbers(factors)})),
      with_axis(*this, limits_, 1));
  const std::string counts =
      part("And", {are_large(*this, boxes, backend::kSmallestObject), with_axis(*this, regions.are_there, 2)});
  const std::string scores = part("Where", {counts, shown, number(0.0f)});
  const std::string kept = without_doubles(
      *this, shaped(turned(boxes, {0, 2, 1, 3}), {-1, count, 4}), shaped(turned(scores, {0, 2, 1}), {-1, 1, count}),
      {.most = found.detections, .overlap = found.overlap_threshold, .limit = found.score_threshold});
  const std::int64_t most = std::min<std::int64_t>(found.detections, count * classes);
  const std::string by_region = turned(shaped(kept, {-1, classes, count}), {0, 2, 1});
  const Largest best = largest(shaped(by_region, {-1, count * classes}), most);
  const std::string are_there = part("Greater", {best.values, number(0.0f)});
  const std::string objects = rows_at(*this, shaped(boxes, {-1, count * classes, 4}), best.places);
  regions_[std::ssize(values_)] = {.boxes = part("Where", {with_axis(*this, are_there, 2), objects, number(0.0f)}),
                                   .are_there = are_there,
                                   .scores = best.values,
                                   .labels = part("Mod", {best.places, number(classes)}),
                                   .count = most};
  return {.of_regions = true};
}

// Of the masks of all classes the one of the object's own.
Value OnnxGraph::add_region_results(const nn::Node& each, const nn::RegionLoss& layer) {
  found_ = regions_.at(each.inputs[5]);
  if (layer.found.mask == 0) return {};
  const std::string own = part("Reshape", {part("Add", {found_.labels, number(std::int64_t{1})}), numbers({-1, 1})});
  const std::string logits = part("GatherND", {input_of(each, 6).name, own}, {integer("batch_dims", 1)});
  masks_ =
      part("Reshape", {part("Sigmoid", {logits}), numbers({-1, found_.count, layer.found.mask, layer.found.mask})});
  return {};
}

}  // namespace dtrain::train::onnx
