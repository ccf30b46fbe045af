#include "shapes_scene.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <dtrain/base/math.hpp>

namespace dtrain::data {
namespace {

constexpr int kSide = kShapesSide;
constexpr float kMiddle = kSide / 2.0f;
constexpr float kMostTurn = 0.7f;      // radians that a shape is turned, either way
constexpr float kLeastContrast = 120;  // between a shape's colour and the background's, as distance in RGB

using Colour = std::array<float, 3>;

struct Direction {
  float cos = 1, sin = 0;
};

Direction direction_within(float half_angle, RandomStream& random) {
  const auto angle = static_cast<double>(random.uniform(-half_angle, half_angle));
  return {static_cast<float>(portable_cos(angle)), static_cast<float>(portable_sin(angle))};
}

Direction any_direction(RandomStream& random) { return direction_within(3.1415927f, random); }

Colour any_colour(RandomStream& random) {
  return {random.uniform(0, 255), random.uniform(0, 255), random.uniform(0, 255)};
}

Colour mix(const Colour& a, const Colour& b, float part_of_b) {
  Colour mixed;
  for (std::size_t c = 0; c < 3; ++c) mixed[c] = a[c] + part_of_b * (b[c] - a[c]);
  return mixed;
}

float contrast(const Colour& a, const Colour& b) {
  float sum = 0;
  for (std::size_t c = 0; c < 3; ++c) sum += (a[c] - b[c]) * (a[c] - b[c]);
  return std::sqrt(sum);
}

Colour colour_against(const Colour& background, RandomStream& random) {
  for (;;) {
    const Colour colour = any_colour(random);
    if (contrast(colour, background) >= kLeastContrast) return colour;
  }
}

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

// How much of a pixel a shape covers whose edge is `distance` pixels away: an edge as wide as a pixel, or softer.
float coverage(float distance, float softness) { return std::clamp(0.5f - distance / softness, 0.0f, 1.0f); }

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
  const Colour colour = any_colour(random);
  canvas.paint([&](Point pixel, const Colour& below) {
    const Point offset{pixel.x - centre.x, pixel.y - centre.y};
    const float along = std::clamp(offset.x * turn.cos + offset.y * turn.sin, -length, length);
    const float dx = offset.x - along * turn.cos, dy = offset.y - along * turn.sin;
    return mix(below, colour, coverage(std::sqrt(dx * dx + dy * dy) - thickness, 1));
  });
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

// The sum of four uniform bytes, near enough to a normal number and cheap.
float noise(RandomStream& random, float strength) {
  const std::uint32_t bits = random.bits();
  const std::uint32_t sum = (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24);
  constexpr float kMean = 510, kDeviation = 147.8f;
  return strength * (static_cast<float>(sum) - kMean) / kDeviation;
}

void add_noise(Canvas& canvas, RandomStream& random) {
  const float strength = random.uniform(2, 12);
  canvas.paint([&](Point, Colour pixel) {
    for (float& value : pixel) value += noise(random, strength);
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
  paint_shape(canvas, outlines, label, colour_against(mix(first, second, 0.5f), random), random);
  for (std::uint32_t before = random.below(2); before > 0; --before)
    paint_clutter(canvas, random.uniform(0.5f, 1.0f), random);
  add_noise(canvas, random);
  return canvas.to_image();
}

}  // namespace dtrain::data
