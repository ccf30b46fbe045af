// A polygon as the pixels that COCO counts to it: its outline is walked on a grid five times as fine, and each column
// of pixels begins and ends to be inside where the outline crosses its middle.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/data/rle.hpp>

namespace dtrain::data {
namespace {

constexpr double kFiner = 5;
constexpr double kFarthest = 1e6;  // pixels; keeps the numbers of the grid whole

struct GridPoint {
  int x = 0, y = 0;
};

int on_grid(double value) { return static_cast<int>(kFiner * std::clamp(value, -kFarthest, kFarthest) + 0.5); }

// Calls visit for each point of the line, both ends included.
template <typename Visit>
void walk_line(GridPoint from, GridPoint to, const Visit& visit) {
  const int dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  const bool flat = dx >= dy;
  const bool flipped = flat ? from.x > to.x : from.y > to.y;
  if (flipped) std::swap(from, to);
  const int length = flat ? dx : dy;
  const double slope = length == 0 ? 0 : static_cast<double>(flat ? to.y - from.y : to.x - from.x) / length;
  for (int step = 0; step <= length; ++step) {
    const int t = flipped ? length - step : step;
    if (flat) {
      visit(GridPoint{t + from.x, static_cast<int>(from.y + slope * t + 0.5)});
    } else {
      visit(GridPoint{static_cast<int>(from.x + slope * t + 0.5), t + from.y});
    }
  }
}

// The pixel, counted down the columns, from which on the crossing turns inside and outside; nullopt where the outline
// crosses no middle of a column of the picture.
std::optional<std::uint32_t> crossing(const GridPoint& before, const GridPoint& now, int h, int w) {
  const double x = ((now.x < before.x ? now.x : now.x - 1) + 0.5) / kFiner - 0.5;
  if (std::floor(x) != x || x < 0 || x > w - 1) return std::nullopt;
  const double y = (std::min(now.y, before.y) + 0.5) / kFiner - 0.5;
  const double row = std::ceil(std::clamp(y, 0.0, static_cast<double>(h)));
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(x) * h + static_cast<std::int64_t>(row));
}

// Lengths from the places where a run ends. Two ends at one place leave no run between them.
std::vector<std::uint32_t> runs_between(std::vector<std::uint32_t> ends) {
  std::ranges::sort(ends);
  for (std::size_t i = ends.size() - 1; i > 0; --i) ends[i] -= ends[i - 1];
  std::vector<std::uint32_t> runs{ends.front()};
  for (std::size_t i = 1; i < ends.size();) {
    if (ends[i] > 0) {
      runs.push_back(ends[i++]);
    } else if (++i < ends.size()) {
      runs.back() += ends[i++];
    }
  }
  return runs;
}

}  // namespace

std::optional<std::string> fault_of_corners(std::span<const double> corners) {
  constexpr std::size_t kLeastNumbers = 6;
  if (corners.size() < kLeastNumbers || corners.size() % 2 != 0)
    return "a polygon of its mask has fewer than three corners";
  if (!std::ranges::all_of(corners, [](double value) { return std::isfinite(value); }))
    return "its mask has corners that are no numbers";
  return std::nullopt;
}

Rle mask_of_polygon(std::span<const double> corners, int h, int w) {
  DTRAIN_CHECK(corners.size() >= 6 && corners.size() % 2 == 0, "a polygon has corners");
  const std::size_t count = corners.size() / 2;
  const auto corner = [&](std::size_t i) {
    return GridPoint{on_grid(corners[2 * (i % count)]), on_grid(corners[2 * (i % count) + 1])};
  };
  std::vector<std::uint32_t> ends;
  std::optional<GridPoint> before;
  for (std::size_t i = 0; i < count; ++i) {
    walk_line(corner(i), corner(i + 1), [&](const GridPoint& point) {
      if (before && point.x != before->x) {
        if (const auto end = crossing(*before, point, h, w)) ends.push_back(*end);
      }
      before = point;
    });
  }
  ends.push_back(static_cast<std::uint32_t>(std::int64_t{h} * w));
  return {h, w, runs_between(std::move(ends))};
}

}  // namespace dtrain::data
