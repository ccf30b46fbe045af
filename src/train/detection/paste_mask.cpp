// In float32 and in torchvision's order, so that a pixel at the limit falls on the same side.
#include "paste_mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace dtrain::train {
namespace {

constexpr float kInside = 0.5f;

// The points before and after a pixel, and how near the pixel is to the second one.
struct Neighbours {
  int first = 0, second = 0;
  float share = 0;
};

// The pixels of one direction: from `begin` on so many get the points, of which those that the picture has are counted.
struct Stretch {
  std::int64_t begin = 0, length = 1;
  std::int64_t from = 0, to = 0;  // in the picture

  // `low` and `high` are a box's edges. The points grow by one of zeros at each end, and the box as they do.
  Stretch(float low, float high, int side, int room) {
    const float half = (high - low) * 0.5f * (static_cast<float>(side + 2) / static_cast<float>(side));
    const float middle = (high + low) * 0.5f;
    begin = whole(middle - half);
    const std::int64_t end = whole(middle + half) + 1;
    length = std::max<std::int64_t>(end - begin, 1);
    from = std::max<std::int64_t>(begin, 0);
    to = std::min<std::int64_t>(end, room);
  }

  Neighbours at(std::int64_t pixel, int points) const {
    const float scale = static_cast<float>(points) / static_cast<float>(length);
    const float place = std::max(scale * (static_cast<float>(pixel - begin) + 0.5f) - 0.5f, 0.0f);
    const int first = std::min(static_cast<int>(place), points - 1);
    return {first, std::min(first + 1, points - 1), place - static_cast<float>(first)};
  }

 private:
  // A box of no numbers, which a network without sense may find, is a far one.
  static std::int64_t whole(float edge) {
    constexpr float kFar = 1 << 24;
    return static_cast<std::int64_t>(std::fmin(std::fmax(edge, -kFar), kFar));
  }
};

float blended(float first, float second, float share) { return (1.0f - share) * first + share * second; }

std::vector<float> with_rim(std::span<const float> likely, int side) {
  const auto points = static_cast<std::size_t>(side) + 2;
  std::vector<float> padded(points * points);
  for (std::size_t row = 0; row + 2 < points; ++row) {
    std::ranges::copy(likely.subspan(row * (points - 2), points - 2),
                      padded.begin() + static_cast<std::ptrdiff_t>((row + 1) * points + 1));
  }
  return padded;
}

// Collects the stretches of a mask, which come in the order of its runs.
class MaskRuns {
 public:
  explicit MaskRuns(data::Rle& mask) : runs_(mask.runs) {}
  void add(std::int64_t begin, std::int64_t end) {
    if (begin == end_ && !runs_.empty()) {
      runs_.back() += static_cast<std::uint32_t>(end - begin);
    } else {
      runs_.push_back(static_cast<std::uint32_t>(begin - end_));
      runs_.push_back(static_cast<std::uint32_t>(end - begin));
    }
    end_ = end;
  }
  void finish(std::int64_t pixels) {
    if (end_ < pixels) runs_.push_back(static_cast<std::uint32_t>(pixels - end_));
  }

 private:
  std::vector<std::uint32_t>& runs_;
  std::int64_t end_ = 0;
};

}  // namespace

data::Rle paste_mask(std::span<const float> likely, int side, const nn::Box& box, int h, int w) {
  const int points = side + 2;
  const std::vector<float> padded = with_rim(likely, side);
  const Stretch across(box.left, box.right, side, w), down(box.top, box.bottom, side, h);
  std::vector<Neighbours> rows;
  for (std::int64_t y = down.from; y < down.to; ++y) rows.push_back(down.at(y, points));
  data::Rle mask{h, w, {}};
  MaskRuns runs(mask);
  for (std::int64_t x = across.from; x < across.to; ++x) {
    const Neighbours columns = across.at(x, points);
    const auto value = [&](int row) {
      const std::size_t begin = static_cast<std::size_t>(row) * static_cast<std::size_t>(points);
      return blended(padded[begin + static_cast<std::size_t>(columns.first)],
                     padded[begin + static_cast<std::size_t>(columns.second)], columns.share);
    };
    std::int64_t begin = -1;  // of a stretch inside
    for (std::int64_t y = down.from; y <= down.to; ++y) {
      bool inside = false;
      if (y < down.to) {
        const Neighbours& row = rows[static_cast<std::size_t>(y - down.from)];
        inside = blended(value(row.first), value(row.second), row.share) > kInside;
      }
      const std::int64_t at = x * h + y;
      if (inside && begin < 0) begin = at;
      if (!inside && begin >= 0) runs.add(std::exchange(begin, -1), at);
    }
  }
  runs.finish(std::int64_t{h} * w);
  return mask;
}

}  // namespace dtrain::train
