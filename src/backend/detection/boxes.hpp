// Boxes in float32, operation by operation as torchvision computes them. For every backend: a GPU gets the bits that a
// CPU gets.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include <dtrain/backend/detection.hpp>
#include <dtrain/nn/objects.hpp>

#include "../loss_terms.hpp"

namespace dtrain::backend {

// Rounded by itself: a GPU's compiler would else make one rounding of a product and of the sum behind it.
constexpr float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  if (!std::is_constant_evaluated()) return __fmul_rn(a, b);
#endif
  return a * b;
}

constexpr float area_of(const nn::Box& box) { return rounded_product(box.right - box.left, box.bottom - box.top); }

// Intersection over union, in [0, 1].
constexpr float overlap_of(const nn::Box& a, const nn::Box& b) {
  const float width = std::max(0.0f, std::min(a.right, b.right) - std::max(a.left, b.left));
  const float height = std::max(0.0f, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
  const float both = rounded_product(width, height), either = area_of(a) + area_of(b) - both;
  return either > 0 ? both / either : 0;
}

namespace box_parts {

struct Centred {
  float width, height, x, y;
};

constexpr Centred centred(const nn::Box& box) {
  const float width = box.right - box.left, height = box.bottom - box.top;
  return {width, height, box.left + rounded_product(0.5f, width), box.top + rounded_product(0.5f, height)};
}

constexpr float logarithm_of_ratio(float a, float b) {
  return static_cast<float>(portable_log(static_cast<double>(a / b)));
}

// A box is at most 62.5 times as large as its anchor.
constexpr float scaled(float by, float size) {
  const double growth = by;
  return rounded_product(static_cast<float>(bounded_exp(kMostGrowth < growth ? kMostGrowth : growth)), size);
}

}  // namespace box_parts

// What moves and scales an anchor to a box: the shift of the centre in the anchor's sizes, and the logarithm of the
// ratio of the sizes; across, then down. Both boxes have an area.
using BoxCode = std::array<float, 4>;
constexpr BoxCode encode_box(const nn::Box& anchor, const nn::Box& box) {
  const box_parts::Centred from = box_parts::centred(anchor), to = box_parts::centred(box);
  return {(to.x - from.x) / from.width, (to.y - from.y) / from.height,
          box_parts::logarithm_of_ratio(to.width, from.width), box_parts::logarithm_of_ratio(to.height, from.height)};
}
constexpr nn::Box decode_box(const nn::Box& anchor, const BoxCode& code) {
  const box_parts::Centred from = box_parts::centred(anchor);
  const float x = rounded_product(code[0], from.width) + from.x, y = rounded_product(code[1], from.height) + from.y;
  const float half_width = rounded_product(0.5f, box_parts::scaled(code[2], from.width));
  const float half_height = rounded_product(0.5f, box_parts::scaled(code[3], from.height));
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

// The codes of regions are numbers times 10 across and down, and times 5 for the sizes.
constexpr BoxCode encode_region(const nn::Box& region, const nn::Box& box) {
  const BoxCode code = encode_box(region, box);
  return {kCentreFactor * code[0], kCentreFactor * code[1], kSizeFactor * code[2], kSizeFactor * code[3]};
}
constexpr nn::Box decode_region(const nn::Box& region, const BoxCode& code) {
  return decode_box(region,
                    {code[0] / kCentreFactor, code[1] / kCentreFactor, code[2] / kSizeFactor, code[3] / kSizeFactor});
}

// Cut off at the edges of a picture that begins at 0, 0.
constexpr nn::Box clipped(const nn::Box& box, int height, int width) {
  const auto right = static_cast<float>(width), bottom = static_cast<float>(height);
  return {std::clamp(box.left, 0.0f, right), std::clamp(box.top, 0.0f, bottom), std::clamp(box.right, 0.0f, right),
          std::clamp(box.bottom, 0.0f, bottom)};
}

constexpr bool is_at_least(const nn::Box& box, float side) {
  return box.right - box.left >= side && box.bottom - box.top >= side;
}

}  // namespace dtrain::backend
