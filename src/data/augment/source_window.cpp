#include "source_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>

#include "augment_steps.hpp"
#include "codec/codecs.hpp"

namespace dtrain::data {
namespace {

constexpr int kFixedWords = 10;  // of Draws
constexpr int kTries = 10;

struct Range {
  double low = 0, high = 0;
};

Range aspect_ratios(const Augment& options) {
  const double most = static_cast<double>(options.max_random_aspect_ratio);
  if (options.min_random_aspect_ratio > 0) return {static_cast<double>(options.min_random_aspect_ratio), most};
  if (most > 0) return {1 - most, 1 + most};
  return {3.0 / 4, 4.0 / 3};
}

SourceWindow window_at(int y, int x, int h, int w) {
  return {{static_cast<double>(y), static_cast<double>(h), y, y + h},
          {static_cast<double>(x), static_cast<double>(w), x, x + w}};
}

// The largest window in the middle with an allowed aspect.
SourceWindow central_window(int h, int w, const Range& ratios) {
  const double ratio = std::clamp(static_cast<double>(w) / h, ratios.low, ratios.high);
  const int window_w = std::clamp(static_cast<int>(h * ratio + 0.5), 1, w);
  const int window_h = std::clamp(static_cast<int>(w / ratio + 0.5), 1, h);
  return window_at((h - window_h) / 2, (w - window_w) / 2, window_h, window_w);
}

SourceWindow random_resized(int h, int w, const Augment& options, const SampleKey& key) {
  RandomStream random = key.stream(RandomUse::augment);
  for (int i = 0; i < kFixedWords; ++i) random.bits();
  const Range ratios = aspect_ratios(options);
  for (int i = 0; i < kTries; ++i) {
    const Draw area_word(random.bits()), ratio_word(random.bits()), swap_word(random.bits()), y_word(random.bits()),
        x_word(random.bits());
    const double area =
        static_cast<double>(area_word.between(options.min_random_area, options.max_random_area)) * h * w;
    const double ratio =
        static_cast<double>(ratio_word.between(static_cast<float>(ratios.low), static_cast<float>(ratios.high)));
    int window_w = static_cast<int>(std::sqrt(area * ratio) + 0.5),
        window_h = static_cast<int>(std::sqrt(area / ratio) + 0.5);
    if (swap_word.coin()) std::swap(window_w, window_h);
    if (window_h < 1 || window_w < 1 || window_h > h || window_w > w) continue;
    return window_at(y_word.below(h - window_h + 1), x_word.below(w - window_w + 1), window_h, window_w);
  }
  return central_window(h, w, ratios);
}

// The crop of shape.h x shape.w from the picture resized to `sides`, as a part of the picture itself.
SourceWindow crop_of_resized(int h, int w, const Sides& sides, const Augment& options, const Draws& draws,
                             const nn::Shape& shape) {
  const int room_y = sides.h - shape.h, room_x = sides.w - shape.w;
  const int y = options.random_crop ? draws.crop_y.below(room_y + 1) : room_y / 2;
  const int x = options.random_crop ? draws.crop_x.below(room_x + 1) : room_x / 2;
  const double per_y = static_cast<double>(h) / sides.h, per_x = static_cast<double>(w) / sides.w;
  return {{y * per_y, shape.h * per_y, 0, h}, {x * per_x, shape.w * per_x, 0, w}};
}

// The smallest picture of the same aspect that covers the crop.
Sides covering(Sides sides, const nn::Shape& shape) {
  const double cover = std::max({1.0, static_cast<double>(shape.h) / sides.h, static_cast<double>(shape.w) / sides.w});
  const Sides covered = checked_sides(sides.h * cover, sides.w * cover);
  return {std::max(shape.h, covered.h), std::max(shape.w, covered.w)};
}

}  // namespace

Sides checked_sides(double h, double w) {
  if (std::max(h, w) > kMaxPixels)
    throw DataError(fmt::format("resized to {:.0f} x {:.0f} pixels, a side is longer than the {} that dtrain accepts",
                                w, h, kMaxPixels));
  return {static_cast<int>(h), static_cast<int>(w)};
}

Sides with_shorter_edge(int h, int w, int edge) {
  const auto side = [&](int length) {
    const std::int64_t whole = std::int64_t{edge} * length / std::min(h, w);
    return static_cast<double>(whole);
  };
  return checked_sides(side(h), side(w));
}

std::optional<SourceWindow> draw_source_window(int h, int w, const Augment& options, const SampleKey& key,
                                               const nn::Shape& shape) {
  if (!only_crops(options)) return std::nullopt;
  const Draws draws(key);
  SourceWindow window;
  if (options.random_resized_crop) {
    window = random_resized(h, w, options, key);
  } else if (options.resize > 0) {
    window = crop_of_resized(h, w, covering(with_shorter_edge(h, w, options.resize), shape), options, draws, shape);
  } else if (h >= shape.h && w >= shape.w) {
    window = crop_of_resized(h, w, {h, w}, options, draws, shape);
  } else {
    return std::nullopt;
  }
  window.mirror = draws.mirrors(options);
  return window;
}

}  // namespace dtrain::data
