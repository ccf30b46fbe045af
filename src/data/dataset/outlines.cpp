#include "outlines.hpp"

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

namespace dtrain::data {
namespace {

constexpr double kTwoPi = 6.283185307179586;

// Corners on circles around the origin, the radii taken in turn.
std::vector<Point> corners(int count, std::initializer_list<double> radii) {
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    const double radius = radii.begin()[static_cast<std::size_t>(i) % radii.size()], angle = kTwoPi * i / count;
    points.push_back(
        {static_cast<float>(radius * portable_cos(angle)), static_cast<float>(radius * portable_sin(angle))});
  }
  return points;
}

float square_of(float value) { return value * value; }

float to_circle(Point at, float radius) { return std::sqrt(square_of(at.x) + square_of(at.y)) - radius; }

// The nearest edge gives the distance, the number of edges to the right of the point its sign.
float to_polygon(Point at, const std::vector<Point>& corner) {
  float nearest = 1e30f;
  bool inside = false;
  for (std::size_t i = 0, j = corner.size() - 1; i < corner.size(); j = i++) {
    const Point edge{corner[j].x - corner[i].x, corner[j].y - corner[i].y};
    const Point offset{at.x - corner[i].x, at.y - corner[i].y};
    const float along =
        std::clamp((offset.x * edge.x + offset.y * edge.y) / (square_of(edge.x) + square_of(edge.y)), 0.0f, 1.0f);
    nearest = std::min(nearest, square_of(offset.x - along * edge.x) + square_of(offset.y - along * edge.y));
    const bool crosses = (corner[i].y > at.y) != (corner[j].y > at.y);
    if (crosses && offset.x < edge.x * offset.y / edge.y) inside = !inside;
  }
  return inside ? -std::sqrt(nearest) : std::sqrt(nearest);
}

}  // namespace

Outlines::Outlines()
    : square_(corners(4, {1.2})),
      hole_(corners(4, {0.72})),
      triangle_(corners(3, {1.3})),
      cross_({{-0.36f, -1.1f},
              {0.36f, -1.1f},
              {0.36f, -0.36f},
              {1.1f, -0.36f},
              {1.1f, 0.36f},
              {0.36f, 0.36f},
              {0.36f, 1.1f},
              {-0.36f, 1.1f},
              {-0.36f, 0.36f},
              {-1.1f, 0.36f},
              {-1.1f, -0.36f},
              {-0.36f, -0.36f}}),
      star_(corners(10, {1.3, 0.55})),
      arrow_({{1.3f, 0}, {0.2f, 1.0f}, {0.2f, 0.36f}, {-1.1f, 0.36f}, {-1.1f, -0.36f}, {0.2f, -0.36f}, {0.2f, -1.0f}}) {
}

float Outlines::distance(std::size_t label, Point at) const {
  switch (label) {
    case 0:
      return to_circle(at, 1);
    case 1:
      return to_polygon(at, square_);
    case 2:
      return to_polygon(at, triangle_);
    case 3:
      return to_polygon(at, cross_);
    case 4:
      return std::max(to_circle(at, 1.05f), -to_circle(at, 0.6f));
    case 5:
      return to_polygon(at, star_);
    case 6:
      return std::max(to_circle({at.x, at.y + 0.55f}, 1.3f), -0.55f - at.y);
    case 7:
      return to_polygon(at, arrow_);
    case 8:
      return std::max(to_circle(at, 1.15f), -to_circle({at.x - 0.55f, at.y}, 0.9f));
    case 9:
      return std::max(to_polygon(at, square_), -to_polygon(at, hole_));
  }
  DTRAIN_CHECK(false, "there are ten shapes");
  return 0;
}

}  // namespace dtrain::data
