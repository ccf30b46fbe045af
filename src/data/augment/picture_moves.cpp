#include "picture_moves.hpp"

#include <cmath>
#include <numbers>

#include <dtrain/base/math.hpp>

namespace dtrain::data {
namespace {

// Places in 1/65536 of a pixel.
constexpr int kFractionBits = 16;
std::int64_t fixed(double value) { return static_cast<std::int64_t>(std::floor(value * (1 << kFractionBits) + 0.5)); }

void move_plane(const Move& move, std::uint8_t fill, int h, int w, const std::uint8_t* from, std::uint8_t* to) {
  const std::int64_t xx = fixed(move.xx), xy = fixed(move.xy), yx = fixed(move.yx), yy = fixed(move.yy);
  std::int64_t row_x = fixed(move.x0 + move.xx * 0.5 + move.xy * 0.5);
  std::int64_t row_y = fixed(move.y0 + move.yx * 0.5 + move.yy * 0.5);
  for (int y = 0; y < h; ++y, row_x += xy, row_y += yy) {
    std::int64_t at_x = row_x, at_y = row_y;
    for (int x = 0; x < w; ++x, at_x += xx, at_y += yx) {
      const std::int64_t source_x = at_x >> kFractionBits, source_y = at_y >> kFractionBits;
      const bool inside = source_x >= 0 && source_x < w && source_y >= 0 && source_y < h;
      *to++ = inside ? from[source_y * w + source_x] : fill;
    }
  }
}

}  // namespace

Move sheared(double by_x, double by_y) { return {.xy = by_x, .yx = by_y}; }

Move translated(int by_x, int by_y) { return {.x0 = -static_cast<double>(by_x), .y0 = -static_cast<double>(by_y)}; }

Move rotated(double degrees, int h, int w) {
  const double angle = -degrees * (std::numbers::pi / 180), cosine = portable_cos(angle), sine = portable_sin(angle);
  const double middle_x = w / 2.0, middle_y = h / 2.0;
  return {.xx = cosine,
          .xy = sine,
          .x0 = middle_x - cosine * middle_x - sine * middle_y,
          .yx = -sine,
          .yy = cosine,
          .y0 = middle_y + sine * middle_x - cosine * middle_y};
}

void move(const Move& move, std::uint8_t fill, PlanarPicture& picture, std::vector<std::uint8_t>& scratch) {
  scratch.resize(picture.pixels.size());
  for (int c = 0; c < picture.c; ++c) {
    move_plane(move, fill, picture.h, picture.w, picture.plane(c),
               scratch.data() + static_cast<std::size_t>(c) * picture.plane_size());
  }
  picture.pixels.swap(scratch);
}

}  // namespace dtrain::data
