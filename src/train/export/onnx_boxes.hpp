// Boxes in a graph of ONNX, as src/backend/detection computes them: the last axis has left, top, right and bottom edge.
#pragma once

#include <string>

#include "onnx_builder.hpp"

namespace dtrain::train::onnx {

// Elements [begin, end) of an axis; kToEnd: all from `begin` on.
inline constexpr std::int64_t kToEnd = 1LL << 62;
std::string slice(OnnxBuilder& to, const std::string& of, std::int64_t axis, std::int64_t begin, std::int64_t end);
std::string with_axis(OnnxBuilder& to, const std::string& of, std::int64_t axis);  // a new one of extent 1
// values [n, m, ...] at places [n, k]: [n, k, ...].
std::string rows_at(OnnxBuilder& to, const std::string& values, const std::string& places);

// Anchors that their codes move and scale.
std::string decoded_boxes(OnnxBuilder& to, const std::string& anchors, const std::string& codes);
// `limits`: the largest value of each edge.
std::string clipped_boxes(OnnxBuilder& to, const std::string& boxes, const std::string& limits);
std::string box_sizes(OnnxBuilder& to, const std::string& boxes);  // [..., 2]: width and height
// Whether a box is so wide and so high.
std::string are_large(OnnxBuilder& to, const std::string& boxes, float smallest);

// [n, k] scores by kind [n or 1, k]: [n, kinds, k], `otherwise` for all kinds but the own.
std::string by_kind(OnnxBuilder& to, const std::string& scores, const std::string& kinds, std::int64_t count,
                    float otherwise);

// Non-maximum suppression of boxes [m, k, 4] by scores [m, kinds, k]: the scores, `gone` instead of those that do
// not stay. A score of at most `limit`, which is `gone` or more, does not.
struct Suppression {
  std::int64_t most = 0;  // of a kind
  float overlap = 0;
  float limit = 0, gone = 0;
};
std::string without_doubles(OnnxBuilder& to, const std::string& boxes, const std::string& scores,
                            const Suppression& rule);

}  // namespace dtrain::train::onnx
