// What the drawn data sets paint with. All of it is whole-number and IEEE arithmetic, the same on every CPU.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include <dtrain/base/math.hpp>
#include <dtrain/base/random.hpp>

#include "outlines.hpp"

namespace dtrain::data {

using Colour = std::array<float, 3>;

struct Direction {
  float cos = 1, sin = 0;
};

inline Direction direction_within(float half_angle, RandomStream& random) {
  const auto angle = static_cast<double>(random.uniform(-half_angle, half_angle));
  return {static_cast<float>(portable_cos(angle)), static_cast<float>(portable_sin(angle))};
}

inline Direction any_direction(RandomStream& random) { return direction_within(3.1415927f, random); }

inline Colour any_colour(RandomStream& random) {
  return {random.uniform(0, 255), random.uniform(0, 255), random.uniform(0, 255)};
}

inline Colour mix(const Colour& a, const Colour& b, float part_of_b) {
  Colour mixed;
  for (std::size_t c = 0; c < 3; ++c) mixed[c] = a[c] + part_of_b * (b[c] - a[c]);
  return mixed;
}

// At least so far away from the background, as distance in RGB.
inline Colour colour_against(const Colour& background, float least_contrast, RandomStream& random) {
  const auto contrast = [&](const Colour& colour) {
    float sum = 0;
    for (std::size_t c = 0; c < 3; ++c) sum += (colour[c] - background[c]) * (colour[c] - background[c]);
    return std::sqrt(sum);
  };
  for (;;) {
    const Colour colour = any_colour(random);
    if (contrast(colour) >= least_contrast) return colour;
  }
}

// How much of a pixel a shape covers whose edge is `distance` pixels away: an edge as wide as a pixel, or softer.
inline float coverage(float distance, float softness) { return std::clamp(0.5f - distance / softness, 0.0f, 1.0f); }

// A straight line with round ends and a thickness; a spot where its length is 0.
struct Bar {
  Point centre;
  Direction turn;
  float half_length = 0, thickness = 1;
  float distance(Point pixel) const {
    const Point offset{pixel.x - centre.x, pixel.y - centre.y};
    const float along = std::clamp(offset.x * turn.cos + offset.y * turn.sin, -half_length, half_length);
    const float dx = offset.x - along * turn.cos, dy = offset.y - along * turn.sin;
    return std::sqrt(dx * dx + dy * dy) - thickness;
  }
};

// The sum of four uniform bytes, near enough to a normal number and cheap.
inline float paint_noise(RandomStream& random, float strength) {
  const std::uint32_t bits = random.bits();
  const std::uint32_t sum = (bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24);
  constexpr float kMean = 510, kDeviation = 147.8f;
  return strength * (static_cast<float>(sum) - kMean) / kDeviation;
}

}  // namespace dtrain::data
