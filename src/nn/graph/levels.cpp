#include <algorithm>

#include <dtrain/nn/detection.hpp>

namespace dtrain::nn {

// The first at the left, the others below each other at its right.
std::vector<LevelPlace> level_places(const Levels& levels) {
  std::vector<LevelPlace> places;
  LevelPlace next{0, 0, levels.height, levels.width};
  for (int level = 0; level < levels.count; ++level) {
    places.push_back(next);
    next = {.top = level == 0 ? 0 : next.top + next.height + 1,
            .left = levels.width + 1,
            .height = (next.height + 1) / 2,
            .width = (next.width + 1) / 2};
  }
  return places;
}

Extent extent_of(const Levels& levels) {
  Extent extent;
  for (const LevelPlace& place : level_places(levels)) {
    extent.height = std::max(extent.height, place.top + place.height);
    extent.width = std::max(extent.width, place.left + place.width);
  }
  return extent;
}

int mask_rows(const Detections& found, int height) {
  if (found.detections == 1) return height >= found.mask ? height : 0;
  const int gaps = height - found.detections * found.mask, between = found.detections - 1;
  return gaps >= 0 && gaps % between == 0 ? found.mask + gaps / between : 0;
}

}  // namespace dtrain::nn
