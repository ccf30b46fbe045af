// The outlines of the ten kinds of shapes, as signed distances.
#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace dtrain::data {

// The labels of the set are the positions here.
inline constexpr std::array<std::string_view, 10> kShapeNames{"circle", "square",    "triangle", "cross",    "ring",
                                                              "star",   "half disc", "arrow",    "crescent", "frame"};

struct Point {
  float x = 0, y = 0;
};

// Immutable after construction; safe for concurrent use.
class Outlines {
 public:
  Outlines();
  // Distance from the point to the shape's edge, negative inside. Every shape is about as large as the unit circle.
  float distance(std::size_t label, Point at) const;

 private:
  std::vector<Point> square_, hole_, triangle_, cross_, star_, arrow_;
};

}  // namespace dtrain::data
