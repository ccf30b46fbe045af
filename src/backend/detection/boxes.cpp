#include "boxes.hpp"

#include <algorithm>

#include <dtrain/backend/detection.hpp>
#include <dtrain/base/math.hpp>

#include "../loss_terms.hpp"

namespace dtrain::backend {
namespace {

struct Centred {
  float width, height, x, y;
};

Centred centred(const nn::Box& box) {
  const float width = box.right - box.left, height = box.bottom - box.top;
  return {width, height, box.left + 0.5f * width, box.top + 0.5f * height};
}

float logarithm_of_ratio(float a, float b) { return static_cast<float>(portable_log(static_cast<double>(a / b))); }

float scaled(float by, float size) {
  return static_cast<float>(bounded_exp(std::min(static_cast<double>(by), kMostGrowth))) * size;
}

}  // namespace

float overlap_of(const nn::Box& a, const nn::Box& b) {
  const float width = std::max(0.0f, std::min(a.right, b.right) - std::max(a.left, b.left));
  const float height = std::max(0.0f, std::min(a.bottom, b.bottom) - std::max(a.top, b.top));
  const float both = width * height, either = area_of(a) + area_of(b) - both;
  return either > 0 ? both / either : 0;
}

BoxCode encode_box(const nn::Box& anchor, const nn::Box& box) {
  const Centred from = centred(anchor), to = centred(box);
  return {(to.x - from.x) / from.width, (to.y - from.y) / from.height, logarithm_of_ratio(to.width, from.width),
          logarithm_of_ratio(to.height, from.height)};
}

nn::Box decode_box(const nn::Box& anchor, const BoxCode& code) {
  const Centred from = centred(anchor);
  const float x = code[0] * from.width + from.x, y = code[1] * from.height + from.y;
  const float half_width = 0.5f * scaled(code[2], from.width), half_height = 0.5f * scaled(code[3], from.height);
  return {x - half_width, y - half_height, x + half_width, y + half_height};
}

BoxCode encode_region(const nn::Box& region, const nn::Box& box) {
  const BoxCode code = encode_box(region, box);
  return {kCentreFactor * code[0], kCentreFactor * code[1], kSizeFactor * code[2], kSizeFactor * code[3]};
}

nn::Box decode_region(const nn::Box& region, const BoxCode& code) {
  return decode_box(region,
                    {code[0] / kCentreFactor, code[1] / kCentreFactor, code[2] / kSizeFactor, code[3] / kSizeFactor});
}

nn::Box clipped(const nn::Box& box, int height, int width) {
  const auto right = static_cast<float>(width), bottom = static_cast<float>(height);
  return {std::clamp(box.left, 0.0f, right), std::clamp(box.top, 0.0f, bottom), std::clamp(box.right, 0.0f, right),
          std::clamp(box.bottom, 0.0f, bottom)};
}

}  // namespace dtrain::backend
