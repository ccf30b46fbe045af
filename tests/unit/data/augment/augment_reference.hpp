// Augmentation once more, slow and obvious: every stage makes a whole image, colours are computed with whole numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <dtrain/base/random.hpp>
#include <dtrain/data/augment.hpp>

namespace dtrain::data::reference {

inline double fraction(std::uint32_t bits) { return (bits >> 8) / 16777216.0; }
inline int below(std::uint32_t bits, int limit) {
  return static_cast<int>(bits * static_cast<std::uint64_t>(limit) >> 32);
}

inline int at(const Image& image, int y, int x, int c) {
  return image.pixels[static_cast<std::size_t>((y * image.w + x) * image.c + c)];
}
inline Image blank(int c, int h, int w, int value) {
  return {c, h, w, std::vector<std::uint8_t>(static_cast<std::size_t>(c * h * w), static_cast<std::uint8_t>(value))};
}
inline void put(Image& image, int y, int x, int c, int value) {
  image.pixels[static_cast<std::size_t>((y * image.w + x) * image.c + c)] = static_cast<std::uint8_t>(value);
}

// Bilinear; outside is `fill`.
inline int interpolated(const Image& image, double y, double x, int c, int fill) {
  const int top = static_cast<int>(std::floor(y)), left = static_cast<int>(std::floor(x));
  const auto value = [&](int yy, int xx) -> double {
    return yy >= 0 && yy < image.h && xx >= 0 && xx < image.w ? at(image, yy, xx, c) : fill;
  };
  const double down = y - top, right = x - left;
  return static_cast<int>(value(top, left) * (1 - down) * (1 - right) + value(top, left + 1) * (1 - down) * right +
                          value(top + 1, left) * down * (1 - right) + value(top + 1, left + 1) * down * right + 0.5);
}

// MXNet's matrix, solved for the source by Cramer's rule.
inline Image warped(const Image& image, const Augment& o, const std::vector<std::uint32_t>& words) {
  const double shear = o.max_random_shear_ratio * (2 * fraction(words[0]) - 1);
  const int max_angle = static_cast<int>(o.max_random_rotate_angle);
  const double angle = (below(words[1], 2 * max_angle + 1) - max_angle) / 180.0 * M_PI;
  const float scale =
      o.min_random_scale + (o.max_random_scale - o.min_random_scale) * static_cast<float>(fraction(words[2]));
  const double ratio = 1 + o.max_random_aspect_ratio * (2 * fraction(words[3]) - 1);
  const double a = std::cos(angle), b = std::sin(angle), hs = 2 * static_cast<double>(scale) / (1 + ratio),
               ws = ratio * hs;
  const double m00 = hs * a - shear * b * ws, m01 = hs * b + shear * a * ws, m10 = -b * ws, m11 = a * ws;
  Image out = blank(image.c, static_cast<int>(scale * static_cast<float>(image.h)),
                    static_cast<int>(scale * static_cast<float>(image.w)), 0);
  const double m02 = (out.w - (m00 * image.w + m01 * image.h)) / 2, m12 = (out.h - (m10 * image.w + m11 * image.h)) / 2;
  const double det = m00 * m11 - m01 * m10;
  for (int y = 0; y < out.h; ++y)
    for (int x = 0; x < out.w; ++x)
      for (int c = 0; c < image.c; ++c) {
        const double from_x = ((x - m02) * m11 - m01 * (y - m12)) / det,
                     from_y = (m00 * (y - m12) - m10 * (x - m02)) / det;
        put(out, y, x, c, interpolated(image, from_y, from_x, c, o.fill_value));
      }
  return out;
}

inline Image padded(const Image& image, int pad, int fill) {
  Image out = blank(image.c, image.h + 2 * pad, image.w + 2 * pad, fill);
  for (int y = 0; y < image.h; ++y)
    for (int x = 0; x < image.w; ++x)
      for (int c = 0; c < image.c; ++c) put(out, y + pad, x + pad, c, at(image, y, x, c));
  return out;
}

inline Image reflected(const Image& image, int pad) {
  Image out = blank(image.c, image.h + 2 * pad, image.w + 2 * pad, 0);
  const auto from = [](int at, int size) { return at < 0 ? -at : at >= size ? 2 * size - 2 - at : at; };
  for (int y = 0; y < out.h; ++y)
    for (int x = 0; x < out.w; ++x)
      for (int c = 0; c < image.c; ++c) put(out, y, x, c, at(image, from(y - pad, image.h), from(x - pad, image.w), c));
  return out;
}

inline Image grown(const Image& image, int h, int w) {
  const double factor = std::max({1.0, static_cast<double>(h) / image.h, static_cast<double>(w) / image.w});
  if (factor == 1.0) return image;
  Image out = blank(image.c, std::max(h, static_cast<int>(image.h * factor)),
                    std::max(w, static_cast<int>(image.w * factor)), 0);
  const Image bordered = [&] {  // edges repeated, so that nothing is interpolated with a fill
    Image edge = blank(image.c, image.h + 2, image.w + 2, 0);
    for (int y = 0; y < edge.h; ++y)
      for (int x = 0; x < edge.w; ++x)
        for (int c = 0; c < image.c; ++c)
          put(edge, y, x, c, at(image, std::clamp(y - 1, 0, image.h - 1), std::clamp(x - 1, 0, image.w - 1), c));
    return edge;
  }();
  for (int y = 0; y < out.h; ++y)
    for (int x = 0; x < out.w; ++x)
      for (int c = 0; c < image.c; ++c) {
        const double from_y = std::clamp((y + 0.5) * image.h / out.h - 0.5, 0.0, image.h - 1.0);
        const double from_x = std::clamp((x + 0.5) * image.w / out.w - 0.5, 0.0, image.w - 1.0);
        put(out, y, x, c, interpolated(bordered, from_y + 1, from_x + 1, c, 0));
      }
  return out;
}

inline int rounded(int numerator, int denominator) {  // of a fraction >= 0, halves upwards
  return (2 * numerator + denominator) / (2 * denominator);
}

// rgb[3] in place, the textbook's way: six sectors.
inline void shift_color(int* rgb, int dh, int ds, int dl) {
  const int r = rgb[0], g = rgb[1], b = rgb[2], high = std::max({r, g, b}), low = std::min({r, g, b}), d = high - low;
  int h = 0, s = 0;
  if (d != 0) {
    s = rounded(255 * d, high + low < 255 ? high + low : 510 - high - low);
    int turn = high == r ? 30 * (g - b) : high == g ? 30 * (b - r) + 60 * d : 30 * (r - g) + 120 * d;
    if (turn < 0) turn += 180 * d;
    h = rounded(turn, d);
  }
  h = std::clamp(h + dh, 0, 180);
  s = std::clamp(s + ds, 0, 255);
  const int l = std::clamp(rounded(high + low, 2) + dl, 0, 255);
  // Chroma/2 = s/255 * min(l, 255-l); inside a sector one channel is highest, one lowest, one in between.
  const int half = s * std::min(l, 255 - l), sector = h % 180 / 30, part = h % 180 % 30;
  const int top = rounded(l * 3825 + half * 15, 3825), bottom = rounded(l * 3825 - half * 15, 3825);
  const int rising = rounded(l * 3825 - half * (15 - part), 3825),
            falling = rounded(l * 3825 + half * (15 - part), 3825);
  const int table[6][3] = {{top, rising, bottom},  {falling, top, bottom}, {bottom, top, rising},
                           {bottom, falling, top}, {rising, bottom, top},  {top, bottom, falling}};
  std::copy_n(table[sector], 3, rgb);
}

// What the authors' own program does: a middle, half of the length to each side (an odd one's last pixel below and
// right), and both ends clipped.
inline void cut_out(const Augment& o, const SampleKey& key, const nn::Shape& shape, std::vector<float>& out) {
  if (o.cutout == 0) return;
  RandomStream random(key.seed, RandomUse::cutout, key.epoch, key.sample);
  const int middle_y = static_cast<int>(random.below(static_cast<std::uint32_t>(shape.h)));
  const int middle_x = static_cast<int>(random.below(static_cast<std::uint32_t>(shape.w)));
  const int before = o.cutout / 2, after = o.cutout - before;
  const int y1 = std::clamp(middle_y - before, 0, shape.h), y2 = std::clamp(middle_y + after, 0, shape.h);
  const int x1 = std::clamp(middle_x - before, 0, shape.w), x2 = std::clamp(middle_x + after, 0, shape.w);
  for (int c = 0; c < shape.c; ++c)
    for (int y = y1; y < y2; ++y)
      for (int x = x1; x < x2; ++x) out[static_cast<std::size_t>((c * shape.h + y) * shape.w + x)] = 0;
}

inline std::vector<float> augment(const Image& image, const Augment& o, const SampleKey& key, const nn::Shape& shape) {
  RandomStream random(key.seed, RandomUse::augment, key.epoch, key.sample);
  std::vector<std::uint32_t> words(10);
  for (std::uint32_t& word : words) word = random.bits();
  const bool affine = o.max_random_rotate_angle > 0 || o.max_random_shear_ratio > 0 || o.max_random_scale != 1 ||
                      o.min_random_scale != 1 || o.max_random_aspect_ratio > 0;
  const Image seen = affine ? warped(image, o, words) : image;
  Image canvas = o.reflect_pad ? reflected(seen, o.pad_size) : padded(seen, o.pad_size, o.fill_value);
  canvas = grown(canvas, shape.h, shape.w);
  const int room_y = canvas.h - shape.h, room_x = canvas.w - shape.w;
  const int top = o.random_crop ? below(words[4], room_y + 1) : room_y / 2;
  const int left = o.random_crop ? below(words[5], room_x + 1) : room_x / 2;
  const auto shift = [&](int word, int max) {
    return static_cast<int>(max * (2 * fraction(words[static_cast<std::size_t>(word)]) - 1));
  };
  const int dh = shift(6, o.max_random_h), ds = shift(7, o.max_random_s), dl = shift(8, o.max_random_l);
  const bool mirror = o.random_mirror && (words[9] & 0x80000000u) != 0;

  std::vector<float> out(static_cast<std::size_t>(shape.size()));
  for (int y = 0; y < shape.h; ++y)
    for (int x = 0; x < shape.w; ++x) {
      int values[3] = {};
      const int from_x = left + (mirror ? shape.w - 1 - x : x);
      for (int c = 0; c < shape.c; ++c) values[c] = at(canvas, top + y, from_x, c);
      if (o.max_random_h != 0 || o.max_random_s != 0 || o.max_random_l != 0) {
        if (shape.c == 3)
          shift_color(values, dh, ds, dl);
        else
          values[0] = std::clamp(values[0] + dl, 0, 255);
      }
      for (int c = 0; c < shape.c; ++c) {
        const auto k = static_cast<std::size_t>(c);
        out[static_cast<std::size_t>((c * shape.h + y) * shape.w + x)] =
            (static_cast<float>(values[c]) - o.mean[k]) / o.std[k];
      }
    }
  cut_out(o, key, shape, out);
  return out;
}

}  // namespace dtrain::data::reference
