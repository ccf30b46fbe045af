// A polygon as the pixels that COCO counts to it: its outline is walked on a grid five times as fine, and each column
// of pixels begins and ends to be inside where the outline crosses its middle.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ranges>

#include <dtrain/base/error.hpp>
#include <dtrain/data/rle.hpp>

namespace dtrain::data {
namespace {

constexpr int kFiner = 5, kMiddle = 2;  // the middle of a pixel lies behind its column 2 of the grid
constexpr double kFarthest = 1e6;       // pixels; keeps the numbers of the grid whole

struct GridPoint {
  int x = 0, y = 0;
};

int on_grid(double value) { return static_cast<int>(kFiner * std::clamp(value, -kFarthest, kFarthest) + 0.5); }

// The line between two points of the grid, walked from the left or the upper one, a unit of its longer side a step.
class GridLine {
 public:
  GridLine(GridPoint from, GridPoint to) : from_(from), left_(std::min(from.x, to.x)), right_(std::max(from.x, to.x)) {
    const int dx = right_ - left_, dy = std::abs(to.y - from.y);
    flat_ = dx >= dy;
    if (flat_ ? from.x > to.x : from.y > to.y) std::swap(from_, to);
    length_ = flat_ ? dx : dy;
    slope_ = length_ == 0 ? 0 : static_cast<double>(flat_ ? to.y - from_.y : to.x - from_.x) / length_;
  }
  int left() const { return left_; }
  int right() const { return right_; }

  // y of the upper one of the two points between which the line goes from x to x + 1 or back: x >= 0, from left() on
  // and below right(). The step is searched, not walked to: lines may be much longer than the picture is large.
  int upper_y_behind(int x) const {
    const bool rises = slope_ > 0;
    const int step =
        flat_ ? x + 1 - from_.x : *std::ranges::partition_point(std::views::iota(0, length_ + 1), [&](int each) {
          return rises ? x_at(each) <= x : x_at(each) > x;
        });
    return std::min(y_at(step - 1), y_at(step));
  }

 private:
  int x_at(int step) const { return flat_ ? from_.x + step : static_cast<int>(from_.x + slope_ * step + 0.5); }
  int y_at(int step) const { return flat_ ? static_cast<int>(from_.y + slope_ * step + 0.5) : from_.y + step; }

  GridPoint from_;
  int left_, right_, length_ = 0;
  bool flat_ = true;
  double slope_ = 0;
};

// Adds the pixels, counted down the columns, from which on the line turns inside and outside: one for each middle of a
// column of the picture that it crosses.
void add_crossings(const GridLine& line, int h, int w, std::vector<std::uint32_t>& ends) {
  const int first = line.left() <= kMiddle ? 0 : (line.left() - kMiddle + kFiner - 1) / kFiner;
  for (int column = first; column < w && kFiner * column + kMiddle < line.right(); ++column) {
    const double y = (line.upper_y_behind(kFiner * column + kMiddle) + 0.5) / kFiner - 0.5;
    const double row = std::ceil(std::clamp(y, 0.0, static_cast<double>(h)));
    ends.push_back(static_cast<std::uint32_t>(static_cast<std::int64_t>(column) * h + static_cast<std::int64_t>(row)));
  }
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
  for (std::size_t i = 0; i < count; ++i) add_crossings(GridLine(corner(i), corner(i + 1)), h, w, ends);
  ends.push_back(static_cast<std::uint32_t>(std::int64_t{h} * w));
  return {h, w, runs_between(std::move(ends))};
}

}  // namespace dtrain::data
