#include "onnx_value.hpp"

#include <deque>

namespace dtrain::train {
namespace {

// Appends a part; where it continues the last one, that grows.
void append(std::vector<OnnxPart>& parts, const OnnxPart& part) {
  if (part.extent == 1) return;
  if (!parts.empty() && parts.back().axis == part.axis && parts.back().stride == part.extent * part.stride) {
    parts.back() = {part.axis, parts.back().extent * part.extent, part.stride};
  } else {
    parts.push_back(part);
  }
}

}  // namespace

OnnxLayout image_layout(std::int64_t batch, const nn::Shape& shape) {
  OnnxLayout layout(4);
  append(layout[0], {OnnxAxis::batch, batch, 1});
  append(layout[1], {OnnxAxis::channel, shape.c, 1});
  append(layout[2], {OnnxAxis::pixel, shape.h, shape.w});
  append(layout[3], {OnnxAxis::pixel, shape.w, 1});
  return layout;
}

Extents extents_of(const OnnxLayout& layout) {
  Extents extents;
  for (const std::vector<OnnxPart>& parts : layout) {
    std::int64_t extent = 1;
    for (const OnnxPart& part : parts) extent *= part.extent;
    extents.push_back(extent);
  }
  return extents;
}

// Each extent takes parts from the front, and splits the last one where it needs no more than the slower part of it.
std::optional<OnnxLayout> reshaped(const OnnxLayout& layout, const Extents& extents) {
  std::deque<OnnxPart> rest;
  for (const std::vector<OnnxPart>& parts : layout) rest.insert(rest.end(), parts.begin(), parts.end());
  OnnxLayout result;
  for (std::int64_t wanted : extents) {
    if (wanted < 1) return std::nullopt;
    std::vector<OnnxPart> taken;
    while (wanted > 1) {
      if (rest.empty()) return std::nullopt;
      const OnnxPart part = rest.front();
      rest.pop_front();
      if (wanted % part.extent == 0) {
        append(taken, part);
        wanted /= part.extent;
        continue;
      }
      if (part.extent % wanted != 0) return std::nullopt;
      const std::int64_t inner = part.extent / wanted;
      append(taken, {part.axis, wanted, part.stride * inner});
      rest.push_front({part.axis, inner, part.stride});
      wanted = 1;
    }
    result.push_back(std::move(taken));
  }
  if (!rest.empty()) return std::nullopt;
  return result;
}

OnnxLayout transposed(const OnnxLayout& layout, const Extents& order) {
  OnnxLayout result;
  for (const std::int64_t axis : order) result.push_back(layout.at(static_cast<std::size_t>(axis)));
  return result;
}

bool is_whole(const std::vector<OnnxPart>& parts, OnnxAxis axis, std::int64_t extent) {
  if (extent == 1) return parts.empty();
  return parts == std::vector<OnnxPart>{{axis, extent, 1}};
}

std::vector<OnnxPart> joined(const OnnxLayout& layout, std::size_t first, std::size_t count) {
  std::vector<OnnxPart> parts;
  for (std::size_t axis = first; axis < first + count; ++axis) {
    for (const OnnxPart& part : layout.at(axis)) append(parts, part);
  }
  return parts;
}

}  // namespace dtrain::train
