#include "onnx_boxes.hpp"

#include <array>

#include <dtrain/backend/detection.hpp>

namespace dtrain::train::onnx {
namespace {

constexpr std::int64_t kLast = -1;

// A pair of edges: left and top, right and bottom; or the numbers of a code for centres, for sizes.
std::string first_pair(OnnxBuilder& to, const std::string& of) { return slice(to, of, kLast, 0, 2); }
std::string second_pair(OnnxBuilder& to, const std::string& of) { return slice(to, of, kLast, 2, 4); }

}  // namespace

std::string slice(OnnxBuilder& to, const std::string& of, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  return to.part("Slice", {of, to.numbers({begin}), to.numbers({end}), to.numbers({axis})});
}

std::string with_axis(OnnxBuilder& to, const std::string& of, std::int64_t axis) {
  return to.part("Unsqueeze", {of, to.numbers({axis})});
}

std::string rows_at(OnnxBuilder& to, const std::string& values, const std::string& places) {
  return to.part("GatherND", {values, with_axis(to, places, 2)}, {integer("batch_dims", 1)});
}

std::string box_sizes(OnnxBuilder& to, const std::string& boxes) {
  return to.part("Sub", {second_pair(to, boxes), first_pair(to, boxes)});
}

std::string decoded_boxes(OnnxBuilder& to, const std::string& anchors, const std::string& codes) {
  const std::string half = to.number(0.5f);
  const std::string sizes = box_sizes(to, anchors);
  const std::string centres = to.part("Add", {first_pair(to, anchors), to.part("Mul", {half, sizes})});
  const std::string moved = to.part("Add", {to.part("Mul", {first_pair(to, codes), sizes}), centres});
  const std::string growth =
      to.part("Min", {second_pair(to, codes), to.number(static_cast<float>(backend::kMostGrowth))});
  const std::string halves = to.part("Mul", {half, to.part("Mul", {to.part("Exp", {growth}), sizes})});
  return to.part("Concat", {to.part("Sub", {moved, halves}), to.part("Add", {moved, halves})},
                 {integer("axis", kLast)});
}

std::string clipped_boxes(OnnxBuilder& to, const std::string& boxes, const std::string& limits) {
  return to.part("Max", {to.part("Min", {boxes, limits}), to.number(0.0f)});
}

std::string are_large(OnnxBuilder& to, const std::string& boxes, float smallest) {
  const std::string smaller =
      to.part("ReduceMin", {box_sizes(to, boxes)}, {integers("axes", {kLast}), integer("keepdims", 0)});
  return to.part("GreaterOrEqual", {smaller, to.number(smallest)});
}

std::string by_kind(OnnxBuilder& to, const std::string& scores, const std::string& kinds, std::int64_t count,
                    float otherwise) {
  const std::array<std::int64_t, 3> extents{1, count, 1};
  const std::string is_own = to.part("Equal", {with_axis(to, kinds, 1), to.counted(count, extents)});
  return to.part("Where", {is_own, with_axis(to, scores, 1), to.number(otherwise)});
}

std::string without_doubles(OnnxBuilder& to, const std::string& boxes, const std::string& scores,
                            const Suppression& rule) {
  const auto one = [&](float value) { return to.numbers(std::span<const float>(&value, 1)); };
  const std::string stay =
      to.part("NonMaxSuppression", {boxes, scores, to.numbers({rule.most}), one(rule.overlap), one(rule.limit)});
  const std::string none = to.part("Expand", {to.number(rule.gone), to.part("Shape", {scores})});
  return to.part("ScatterND", {none, stay, to.part("GatherND", {scores, stay})});
}

}  // namespace dtrain::train::onnx
