// The values of an ONNX model, each as the part of a layer's output that it is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <dtrain/nn/graph.hpp>

#include "onnx_file.hpp"

namespace dtrain::train {

using Extents = std::vector<std::int64_t>;

// The axes of a layer's output: samples, channels, and pixels row after row. The scores of an attention have an axis of
// queries and one of keys, which are pixels.
enum class OnnxAxis { batch, channel, pixel, query, key };

// `extent` indices of an axis, `stride` apart.
struct OnnxPart {
  OnnxAxis axis = OnnxAxis::batch;
  std::int64_t extent = 1, stride = 1;
  friend bool operator==(const OnnxPart&, const OnnxPart&) = default;
};

// What each axis of a value runs over, the slowest part first. Parts of one index are left out, so that an axis of
// extent 1 has none; neighbours that are one part of their axis together are one.
using OnnxLayout = std::vector<std::vector<OnnxPart>>;

// [n, c, h, w].
OnnxLayout image_layout(std::int64_t batch, const nn::Shape& shape);
Extents extents_of(const OnnxLayout& layout);
// nullopt: the extents are no sizes that these parts can have, in their order.
std::optional<OnnxLayout> reshaped(const OnnxLayout& layout, const Extents& extents);
// Axis i is axis order[i] of the layout, whose axes `order` names once each.
OnnxLayout transposed(const OnnxLayout& layout, const Extents& order);
// Whether the parts are all `extent` indices of the axis, in their order.
bool is_whole(const std::vector<OnnxPart>& parts, OnnxAxis axis, std::int64_t extent);
// The parts of some axes of the layout behind each other.
std::vector<OnnxPart> joined(const OnnxLayout& layout, std::size_t first, std::size_t count);

// Channels of a layer that an attention takes: `count` heads of `size` channels from channel `first` on.
struct OnnxHeads {
  int layer = 0;
  std::int64_t first = 0, count = 1, size = 0;
};

// erf and one_plus_erf: that of the layer's output divided by the root of 2. scores: products of queries and keys;
// shares: their softmax over the keys.
enum class OnnxForm { layer, erf, one_plus_erf, scores, shares };

struct OnnxValue {
  OnnxForm form = OnnxForm::layer;
  int layer = 0;
  OnnxLayout layout{};
  std::int64_t first_channel = 0;       // where the channels begin of which the value has some
  float factor = 1;                     // times which the layer's output is this value
  const OnnxNode* scaled_by = nullptr;  // what computed the factor
  std::array<std::int64_t, 4> zeros{};  // above, left, below and right of an image, as the next layer pads it
  bool pads_lowest = false;             // by numbers below all others instead of zeros
  OnnxHeads queries{}, keys{};          // of scores and shares
};

}  // namespace dtrain::train
