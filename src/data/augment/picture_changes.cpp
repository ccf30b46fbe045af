#include "picture_changes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include <dtrain/base/math.hpp>

#include "picture_moves.hpp"

namespace dtrain::data {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;
using Bytes = std::vector<std::uint8_t>;

void look_up(const Table& table, std::uint8_t* plane, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) plane[i] = table[plane[i]];
}

template <typename Value>
Table table_of(const Value& value) {
  Table table;
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value(i));
  return table;
}

Histogram histogram_of(const std::uint8_t* plane, std::size_t count) {
  Histogram histogram{};
  for (std::size_t i = 0; i < count; ++i) ++histogram[plane[i]];
  return histogram;
}

// Between two pictures, or beyond the second, in float32 as Pillow's blend does it.
std::uint8_t blend(int from, int to, float share) {
  const float value = static_cast<float>(from) + share * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
}

// ITU-R 601-2 in 16 bits, as Pillow turns colours into greys.
void greys_of(PlanarPicture& picture, Bytes& greys) {
  const std::size_t count = picture.plane_size();
  if (picture.c == 1) {
    greys.assign(picture.pixels.begin(), picture.pixels.end());
    return;
  }
  greys.resize(count);
  const std::uint8_t *r = picture.plane(0), *g = picture.plane(1), *b = picture.plane(2);
  for (std::size_t i = 0; i < count; ++i) {
    greys[i] = static_cast<std::uint8_t>((r[i] * 19595u + g[i] * 38470u + b[i] * 7471u + 0x8000u) >> 16);
  }
}

// A plane becomes `share` of the way from another one, `from`, to itself.
void blend_plane(const std::uint8_t* from, float share, std::uint8_t* plane, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) plane[i] = blend(from[i], plane[i], share);
}

void change_brightness(float share, PlanarPicture& picture) {
  look_up(table_of([&](int value) { return blend(0, value, share); }), picture.pixels.data(), picture.pixels.size());
}

void change_color(float share, PlanarPicture& picture, Bytes& greys) {
  if (picture.c == 1) return;
  greys_of(picture, greys);
  for (int c = 0; c < picture.c; ++c) blend_plane(greys.data(), share, picture.plane(c), picture.plane_size());
}

void change_contrast(float share, PlanarPicture& picture, Bytes& greys) {
  greys_of(picture, greys);
  const auto sum = std::accumulate(greys.begin(), greys.end(), std::int64_t{0});
  const int mean = static_cast<int>(static_cast<double>(sum) / static_cast<double>(greys.size()) + 0.5);
  look_up(table_of([&](int value) { return blend(mean, value, share); }), picture.pixels.data(), picture.pixels.size());
}

// Each pixel but those of the edge as the mean of its 3x3 neighbours, itself five times.
void smooth(const std::uint8_t* plane, int h, int w, Bytes& smoothed) {
  constexpr int kMiddle = 5, kSum = 13;
  smoothed.assign(plane, plane + static_cast<std::ptrdiff_t>(h) * w);
  for (int y = 1; y + 1 < h; ++y) {
    const std::uint8_t* row = plane + static_cast<std::ptrdiff_t>(y) * w;
    for (int x = 1; x + 1 < w; ++x) {
      int sum = (kMiddle - 1) * row[x];
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) sum += row[static_cast<std::ptrdiff_t>(dy) * w + x + dx];
      }
      smoothed[static_cast<std::size_t>(static_cast<std::ptrdiff_t>(y) * w + x)] =
          static_cast<std::uint8_t>((2 * sum + kSum) / (2 * kSum));
    }
  }
}

void change_sharpness(float share, PlanarPicture& picture, Bytes& smoothed) {
  for (int c = 0; c < picture.c; ++c) {
    smooth(picture.plane(c), picture.h, picture.w, smoothed);
    blend_plane(smoothed.data(), share, picture.plane(c), picture.plane_size());
  }
}

void posterize(int bits, PlanarPicture& picture) {
  const int kept = 0xFF << (8 - bits);
  look_up(table_of([&](int value) { return value & kept; }), picture.pixels.data(), picture.pixels.size());
}

void solarize(double threshold, PlanarPicture& picture) {
  look_up(table_of([&](int value) { return value < threshold ? value : 255 - value; }), picture.pixels.data(),
          picture.pixels.size());
}

void stretch(std::uint8_t* plane, std::size_t count) {
  const auto [low, high] = std::minmax_element(plane, plane + count);
  if (*high <= *low) return;
  const double scale = 255.0 / (*high - *low), offset = -*low * scale;
  look_up(table_of([&](int value) { return std::clamp(static_cast<int>(value * scale + offset), 0, 255); }), plane,
          count);
}

void equalize(std::uint8_t* plane, std::size_t count) {
  const Histogram histogram = histogram_of(plane, count);
  const auto last = std::ranges::find_if(histogram.rbegin(), histogram.rend(), [](auto n) { return n > 0; });
  const std::int64_t step = (static_cast<std::int64_t>(count) - *last) / 255;
  if (step == 0) return;
  std::int64_t below = step / 2;
  look_up(table_of([&](int value) {
            const std::int64_t level = below / step;
            below += histogram[static_cast<std::size_t>(value)];
            return std::min<std::int64_t>(level, 255);
          }),
          plane, count);
}

}  // namespace

void apply(Operation operation, double amount, std::uint8_t fill, PlanarPicture& picture, Bytes& scratch) {
  if (picture.plane_size() == 0) return;
  const auto share = static_cast<float>(1 + amount);
  const auto each_plane = [&](const auto& change) {
    for (int c = 0; c < picture.c; ++c) change(picture.plane(c), picture.plane_size());
  };
  switch (operation) {
    case Operation::identity:
      return;
    case Operation::shear_x:
      return move(sheared(amount, 0), fill, picture, scratch);
    case Operation::shear_y:
      return move(sheared(0, amount), fill, picture, scratch);
    case Operation::translate_x:
      return move(translated(static_cast<int>(amount), 0), fill, picture, scratch);
    case Operation::translate_y:
      return move(translated(0, static_cast<int>(amount)), fill, picture, scratch);
    case Operation::rotate:
      return move(rotated(amount, picture.h, picture.w), fill, picture, scratch);
    case Operation::brightness:
      return change_brightness(share, picture);
    case Operation::color:
      return change_color(share, picture, scratch);
    case Operation::contrast:
      return change_contrast(share, picture, scratch);
    case Operation::sharpness:
      return change_sharpness(share, picture, scratch);
    case Operation::posterize:
      return posterize(static_cast<int>(amount), picture);
    case Operation::solarize:
      return solarize(amount, picture);
    case Operation::auto_contrast:
      return each_plane(stretch);
    case Operation::equalize:
      return each_plane(equalize);
    case Operation::invert:
      return solarize(0, picture);
  }
}

}  // namespace dtrain::data
