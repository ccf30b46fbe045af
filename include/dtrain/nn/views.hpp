// Views of an image, whose mean an evaluation counts. A backend makes them where it computes.
#pragma once

#include <cstdint>
#include <span>

namespace dtrain::nn {

// Position `at` of a row of `size` that goes on beyond its ends as its own reflection. The outermost position is not
// repeated: 2 1 | 0 1 2 3 | 2 1. There and back again where `at` is further out than that.
constexpr std::int32_t reflected(std::int32_t at, std::int32_t size) {
  if (size == 1) return 0;
  while (at < 0 || at >= size) at = at < 0 ? -at : 2 * (size - 1) - at;
  return at;
}

// The image moved by `down` rows and `right` columns, reflected at its edges, and then mirrored.
struct ImageView {
  std::int32_t down = 0, right = 0;
  std::int32_t mirrored = 0;
  float weight = 1;  // of its logits in the mean
  friend bool operator==(const ImageView&, const ImageView&) = default;
};

// Row y of a view of an image of `height` rows is this row of the image; columns likewise.
constexpr std::int32_t view_row(const ImageView& view, std::int32_t y, std::int32_t height) {
  return reflected(y + view.down, height);
}
constexpr std::int32_t view_column(const ImageView& view, std::int32_t x, std::int32_t width) {
  return reflected((view.mirrored ? width - 1 - x : x) + view.right, width);
}

// 1: the image as it is. 2: also mirrored from left to right. 6: also both of these moved by one pixel up and left, and
// down and right. Half of the mean comes from the middle, a quarter from each move. No other number.
std::span<const ImageView> image_views(int number);

}  // namespace dtrain::nn
