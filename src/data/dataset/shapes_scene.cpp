#include "shapes_scene.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "scene_paint.hpp"

namespace dtrain::data {
namespace {

constexpr int kSide = kShapesSide;
constexpr float kMiddle = kSide / 2.0f;
constexpr float kMostTurn = 0.7f;      // radians that a shape is turned, either way
constexpr float kLeastContrast = 120;  // between a shape's colour and the background's, as distance in RGB

// Light that changes evenly over the picture: -1 ... 1 from one border to the other.
struct Gradient {
  Direction direction;
  float at(Point pixel) const {
    return ((pixel.x - kMiddle) * direction.cos + (pixel.y - kMiddle) * direction.sin) / kMiddle;
  }
};

class Canvas {
 public:
  // Calls colour(pixel centre, what is there) for every pixel and keeps the answer.
  template <typename ColourAt>
  void paint(const ColourAt& colour) {
    for (int y = 0; y < kSide; ++y) {
      for (int x = 0; x < kSide; ++x) {
        Colour& pixel = pixels_[static_cast<std::size_t>(y * kSide + x)];
        pixel = colour(Point{static_cast<float>(x) + 0.5f, static_cast<float>(y) + 0.5f}, pixel);
      }
    }
  }

  Image to_image() const {
    Image image{3, kSide, kSide, {}};
    image.pixels.reserve(3 * pixels_.size());
    for (const Colour& pixel : pixels_) {
      for (float value : pixel)
        image.pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f));
    }
    return image;
  }

 private:
  std::array<Colour, kSide * kSide> pixels_{};
};

// Two colours that flow into each other, sometimes in stripes.
void paint_background(Canvas& canvas, const Colour& first, const Colour& second, RandomStream& random) {
  const Gradient gradient{any_direction(random)};
  const bool striped = random.below(4) == 0;
  const float stripes = random.uniform(2, 7);
  canvas.paint([&](Point pixel, const Colour&) {
    const float flow = 0.5f + 0.5f * gradient.at(pixel);
    const float phase = flow * stripes - std::floor(flow * stripes);
    return mix(first, second, striped ? (phase < 0.5f ? 0.3f : 0.7f) : flow);
  });
}

// A straight bar or a round spot anywhere; `thickness` is in pixels.
void paint_clutter(Canvas& canvas, float thickness, RandomStream& random) {
  const Point centre{random.uniform(0, kSide), random.uniform(0, kSide)};
  const Direction turn = any_direction(random);
  const float length = random.below(2) ? random.uniform(3, 9) : 0;
  const Bar bar{centre, turn, length, thickness};
  const Colour colour = any_colour(random);
  canvas.paint([&](Point pixel, const Colour& below) { return mix(below, colour, coverage(bar.distance(pixel), 1)); });
}

void paint_shape(Canvas& canvas, const Outlines& outlines, std::size_t label, const Colour& colour,
                 RandomStream& random) {
  const float radius = random.uniform(7.5f, 11), stretch = random.uniform(0.85f, 1.18f),
              softness = random.uniform(1, 2);
  const float reach = kMiddle - 1.1f * radius;
  const Point centre{kMiddle + random.uniform(-reach, reach), kMiddle + random.uniform(-reach, reach)};
  const Direction turn = direction_within(kMostTurn, random);
  const Gradient light{any_direction(random)};
  const Colour shade = mix(colour, any_colour(random), 0.35f);
  const Point scale{radius * stretch, radius / stretch};
  canvas.paint([&](Point pixel, const Colour& below) {
    const Point offset{pixel.x - centre.x, pixel.y - centre.y};
    const Point own{(offset.x * turn.cos + offset.y * turn.sin) / scale.x,
                    (offset.y * turn.cos - offset.x * turn.sin) / scale.y};
    const float covered = coverage(outlines.distance(label, own) * radius, softness);
    return mix(below, mix(colour, shade, 0.5f + 0.5f * light.at(pixel)), covered);
  });
}

void add_noise(Canvas& canvas, RandomStream& random) {
  const float strength = random.uniform(2, 12);
  canvas.paint([&](Point, Colour pixel) {
    for (float& value : pixel) value += paint_noise(random, strength);
    return pixel;
  });
}

}  // namespace

Image draw_shape(const Outlines& outlines, std::size_t label, RandomStream random) {
  Canvas canvas;
  const Colour first = any_colour(random), second = mix(first, any_colour(random), 0.4f);
  paint_background(canvas, first, second, random);
  for (std::uint32_t behind = random.below(3); behind > 0; --behind)
    paint_clutter(canvas, random.uniform(0.5f, 1.5f), random);
  paint_shape(canvas, outlines, label, colour_against(mix(first, second, 0.5f), kLeastContrast, random), random);
  for (std::uint32_t before = random.below(2); before > 0; --before)
    paint_clutter(canvas, random.uniform(0.5f, 1.0f), random);
  add_noise(canvas, random);
  return canvas.to_image();
}

}  // namespace dtrain::data
