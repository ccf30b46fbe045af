#include "warp.hpp"

#include <algorithm>
#include <array>

#include <dtrain/base/math.hpp>
#include <dtrain/nn/views.hpp>

namespace dtrain::data {
namespace {

constexpr int kMaxChannels = 4;
using Pixel = std::array<float, kMaxChannels>;

int floor_of(double value) {
  const int whole = static_cast<int>(value);
  return whole - (value < whole ? 1 : 0);
}

// Interpolates between the four pixels around (y, x) and rounds to whole numbers, halves upwards.
template <class PixelAt>
void bilinear(double y, double x, int channels, float* values, PixelAt pixel_at) {
  const int top = floor_of(y), left = floor_of(x);
  const double down = y - top, right = x - left;
  std::array<Pixel, 4> around{};
  for (int k = 0; k < 4; ++k) pixel_at(top + k / 2, left + k % 2, around[static_cast<std::size_t>(k)].data());
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    const double above = around[0][c] + (around[1][c] - around[0][c]) * right;
    const double below = around[2][c] + (around[3][c] - around[2][c]) * right;
    values[c] = static_cast<float>(static_cast<int>(above + (below - above) * down + 0.5));
  }
}

}  // namespace

bool warps(const Augment& options) {
  return options.max_random_rotate_angle > 0 || options.max_random_shear_ratio > 0 || options.max_random_scale != 1 ||
         options.min_random_scale != 1 || (options.max_random_aspect_ratio != 0 && !options.random_resized_crop);
}

std::optional<Affine> draw_affine(const Image& image, const Augment& options, const Draws& draws) {
  if (!warps(options)) return std::nullopt;
  const double shear = draws.shear.between(-options.max_random_shear_ratio, options.max_random_shear_ratio);
  const int max_angle = static_cast<int>(options.max_random_rotate_angle);
  const double radians = (draws.angle.below(2 * max_angle + 1) - max_angle) * (3.14159265358979323846 / 180.0);
  const float scale = draws.scale.between(options.min_random_scale, options.max_random_scale);
  const float aspect = options.random_resized_crop ? 0 : options.max_random_aspect_ratio;  // else that draws it
  const double ratio = draws.aspect.between(1 - aspect, 1 + aspect);

  // Forward: (x, y) of the image -> the warped image, centre onto centre.
  const double cosine = portable_cos(radians), sine = portable_sin(radians);
  const double scale_h = 2.0 * static_cast<double>(scale) / (1.0 + ratio), scale_w = ratio * scale_h;
  const double xx = scale_h * cosine - shear * sine * scale_w, xy = scale_h * sine + shear * cosine * scale_w;
  const double yx = -sine * scale_w, yy = cosine * scale_w;
  Affine inverse{.h = std::max(1, static_cast<int>(scale * static_cast<float>(image.h))),
                 .w = std::max(1, static_cast<int>(scale * static_cast<float>(image.w)))};
  const double shift_x = (inverse.w - (xx * image.w + xy * image.h)) / 2.0;
  const double shift_y = (inverse.h - (yx * image.w + yy * image.h)) / 2.0;
  const double determinant = xx * yy - xy * yx;  // scale_h * scale_w: never zero

  inverse.xx = yy / determinant;
  inverse.xy = -xy / determinant;
  inverse.yx = -yx / determinant;
  inverse.yy = xx / determinant;
  inverse.x0 = -(inverse.xx * shift_x + inverse.xy * shift_y);
  inverse.y0 = -(inverse.yx * shift_x + inverse.yy * shift_y);
  return inverse;
}

Canvas::Canvas(const Image& image, const Augment& options, std::optional<Affine> affine)
    : image_(image),
      affine_(affine),
      fill_(static_cast<float>(options.fill_value)),
      reflect_(options.reflect_pad),
      pad_(options.pad_size),
      h_((affine ? affine->h : image.h) + 2 * pad_),
      w_((affine ? affine->w : image.w) + 2 * pad_) {}

void Canvas::pixel(int y, int x, float* values) const {
  const bool inside = y >= pad_ && y < h_ - pad_ && x >= pad_ && x < w_ - pad_;
  if (!inside && reflect_) {
    pixel(pad_ + nn::reflected(y - pad_, h_ - 2 * pad_), pad_ + nn::reflected(x - pad_, w_ - 2 * pad_), values);
  } else if (!inside) {
    std::fill_n(values, image_.c, fill_);
  } else if (affine_) {
    warped(y - pad_, x - pad_, values);
  } else {
    original(y - pad_, x - pad_, values);
  }
}

void Canvas::draw(Image& out) const {
  out.c = image_.c;
  out.h = h_;
  out.w = w_;
  const auto channels = static_cast<std::size_t>(image_.c);
  out.pixels.resize(channels * static_cast<std::size_t>(h_) * static_cast<std::size_t>(w_));
  std::uint8_t* to = out.pixels.data();
  Pixel values{};
  for (int y = 0; y < h_; ++y) {
    for (int x = 0; x < w_; ++x) {
      pixel(y, x, values.data());
      for (std::size_t c = 0; c < channels; ++c) *to++ = static_cast<std::uint8_t>(values[c]);
    }
  }
}

void Canvas::warped(int y, int x, float* values) const {
  const Affine& a = *affine_;
  bilinear(a.yx * x + a.yy * y + a.y0, a.xx * x + a.xy * y + a.x0, image_.c, values,
           [this](int from_y, int from_x, float* out) { original(from_y, from_x, out); });
}

void Canvas::original(int y, int x, float* values) const {
  if (y < 0 || y >= image_.h || x < 0 || x >= image_.w) {
    std::fill_n(values, image_.c, fill_);
    return;
  }
  const std::size_t at =
      (static_cast<std::size_t>(y) * static_cast<std::size_t>(image_.w) + static_cast<std::size_t>(x)) *
      static_cast<std::size_t>(image_.c);
  for (int c = 0; c < image_.c; ++c) values[c] = static_cast<float>(image_.pixels[at + static_cast<std::size_t>(c)]);
}

void resized_pixel(const Canvas& canvas, int channels, int h, int w, int y, int x, float* values) {
  const double from_y = std::clamp((y + 0.5) * canvas.h() / h - 0.5, 0.0, canvas.h() - 1.0);
  const double from_x = std::clamp((x + 0.5) * canvas.w() / w - 0.5, 0.0, canvas.w() - 1.0);
  bilinear(from_y, from_x, channels, values, [&canvas](int canvas_y, int canvas_x, float* out) {
    canvas.pixel(std::min(canvas_y, canvas.h() - 1), std::min(canvas_x, canvas.w() - 1), out);
  });
}

}  // namespace dtrain::data
