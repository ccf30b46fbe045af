#include <dtrain/data/augment.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "augment_steps.hpp"
#include "color.hpp"
#include "cutout.hpp"
#include "erasing.hpp"
#include "pca_noise.hpp"
#include "policy.hpp"
#include "resample.hpp"
#include "source_window.hpp"
#include "warp.hpp"
#include "window_pixels.hpp"

namespace dtrain::data {
namespace {

// The part of the canvas, resized to h x w, that becomes the output.
struct Window {
  int h = 0, w = 0;
  int y = 0, x = 0;
  bool mirror = false;
  bool resizes(const Canvas& canvas) const { return h != canvas.h() || w != canvas.w(); }
};

Window draw_window(const Canvas& canvas, const Augment& options, const Draws& draws, const nn::Shape& shape) {
  const double cover =
      std::max({1.0, static_cast<double>(shape.h) / canvas.h(), static_cast<double>(shape.w) / canvas.w()});
  Window window;
  const Sides covered = checked_sides(canvas.h() * cover, canvas.w() * cover);
  window.h = std::max(shape.h, covered.h);
  window.w = std::max(shape.w, covered.w);
  const int room_y = window.h - shape.h, room_x = window.w - shape.w;
  window.y = options.random_crop ? draws.crop_y.below(room_y + 1) : room_y / 2;
  window.x = options.random_crop ? draws.crop_x.below(room_x + 1) : room_x / 2;
  window.mirror = draws.mirrors(options);
  return window;
}

// One row of one channel straight from the image: fill, `count` values `step` bytes apart, fill.
void copy_row(const std::uint8_t* from, std::ptrdiff_t step, int before, int count, int width, float fill, float* out) {
  std::fill_n(out, before, fill);
  for (int i = 0; i < count; ++i) out[before + i] = static_cast<float>(from[i * step]);
  std::fill_n(out + before + count, width - before - count, fill);
}

// Pad, crop and mirror at once.
void copy_window(const Image& image, const Augment& options, const Window& window, const nn::Shape& shape, float* out) {
  const auto fill = static_cast<float>(options.fill_value);
  const int first_x = window.x - options.pad_size, last_x = std::min(first_x + shape.w, image.w);
  const int from_x = std::max(first_x, 0), columns = std::max(0, last_x - from_x);
  const int left = std::clamp(-first_x, 0, shape.w), right = shape.w - left - columns;
  const std::ptrdiff_t step = window.mirror ? -image.c : image.c;
  for (int c = 0; c < shape.c; ++c) {
    for (int y = 0; y < shape.h; ++y, out += shape.w) {
      const int from_y = y + window.y - options.pad_size;
      if (from_y < 0 || from_y >= image.h || columns == 0) {
        std::fill_n(out, shape.w, fill);
        continue;
      }
      const int begin_x = window.mirror ? from_x + columns - 1 : from_x;
      const std::uint8_t* from =
          &image.pixels[static_cast<std::size_t>((std::ptrdiff_t{from_y} * image.w + begin_x) * image.c + c)];
      copy_row(from, step, window.mirror ? right : left, columns, shape.w, fill, out);
    }
  }
}

// The general way: every output pixel asks the canvas.
void sample_window(const Canvas& canvas, const Window& window, const nn::Shape& shape, float* out) {
  const bool resized = window.resizes(canvas);
  const std::ptrdiff_t plane = std::ptrdiff_t{shape.h} * shape.w;
  for (int y = 0; y < shape.h; ++y) {
    for (int x = 0; x < shape.w; ++x) {
      std::array<float, 4> values{};
      if (resized) {
        resized_pixel(canvas, shape.c, window.h, window.w, y + window.y, x + window.x, values.data());
      } else {
        canvas.pixel(y + window.y, x + window.x, values.data());
      }
      const std::ptrdiff_t to = std::ptrdiff_t{y} * shape.w + (window.mirror ? shape.w - 1 - x : x);
      for (int c = 0; c < shape.c; ++c) out[plane * c + to] = values[static_cast<std::size_t>(c)];
    }
  }
}

void check_channels(const Image& image, const nn::Shape& shape) {
  DTRAIN_CHECK(shape.c == 1 || shape.c == 3, "networks take 1 or 3 channels");
  if (image.c == shape.c) return;
  throw DataError(fmt::format("the image has {} channels, the network takes {}", image.c, shape.c),
                  "give setting 'image-shape' the number of channels of the data");
}

// The largest ratio itself only beside a smallest one, otherwise a change of the ratio.
void check_aspect_ratios(const Augment& options) {
  require_in(kAugmentRanges.random_aspect_ratio, options.min_random_aspect_ratio, "min-random-aspect-ratio");
  const float most = options.max_random_aspect_ratio;
  if (options.random_resized_crop && options.min_random_aspect_ratio > 0)
    return require_in(kAugmentRanges.random_aspect_ratio, most, "max-random-aspect-ratio");
  if (options.random_resized_crop && most >= 1) {
    throw SettingError("max-random-aspect-ratio",
                       fmt::format("{} is no change of the aspect ratio, which is below 1", most),
                       fmt::format("give setting 'min-random-aspect-ratio' 0.75 too if {} is the largest ratio", most));
  }
  require_in(between(0, kMostAspectChange), most, "max-random-aspect-ratio");
}

// Options that a window of random area takes the place of, or cannot be had with.
void check_resized_crop(const Augment& options) {
  require_in(kAugmentRanges.random_area, options.min_random_area, "min-random-area");
  require_in(kAugmentRanges.random_area, options.max_random_area, "max-random-area");
  if (!options.random_resized_crop) return;
  if (options.min_random_area > options.max_random_area) {
    throw SettingError(
        "min-random-area",
        fmt::format("{} is more than the largest area, {}", options.min_random_area, options.max_random_area),
        "give a smaller setting 'min-random-area' or a larger setting 'max-random-area'");
  }
  if (options.max_random_scale != 1 || options.min_random_scale != 1 || options.resize > 0) {
    throw SettingError("random-resized-crop", "cannot be combined with a resize or a random scale",
                       "leave one of them out");
  }
  if (options.min_random_aspect_ratio > options.max_random_aspect_ratio) {
    throw SettingError("min-random-aspect-ratio",
                       fmt::format("{} is more than the largest aspect ratio, {}", options.min_random_aspect_ratio,
                                   options.max_random_aspect_ratio));
  }
}

void check_scale(const Augment& options) {
  require_in(kAugmentRanges.random_scale, options.max_random_scale, "max-random-scale");
  require_in(kAugmentRanges.random_scale, options.min_random_scale, "min-random-scale");
  if (options.min_random_scale <= options.max_random_scale) return;
  throw SettingError("min-random-scale", fmt::format("{} is more than the largest scale, {}", options.min_random_scale,
                                                     options.max_random_scale));
}

}  // namespace

void check_augment(const Augment& options) {
  const AugmentRanges& ranges = kAugmentRanges;
  require_in(ranges.pad_size, options.pad_size, "pad-size");
  require_in(ranges.fill_value, options.fill_value, "fill-value");
  require_in(ranges.cutout, options.cutout, "cutout");
  require_in(ranges.color, options.brightness, "brightness");
  require_in(ranges.color, options.contrast, "contrast");
  require_in(ranges.color, options.saturation, "saturation");
  require_in(ranges.pca_noise, options.pca_noise, "pca-noise");
  require_in(ranges.random_erasing, options.random_erasing, "random-erasing");
  require_in(ranges.rand_augment_ops, options.rand_augment_ops, "rand-augment-ops");
  require_in(ranges.rand_augment_magnitude, options.rand_augment_magnitude, "rand-augment-magnitude");
  require_in(ranges.max_random_h, options.max_random_h, "max-random-h");
  require_in(ranges.max_random_s, options.max_random_s, "max-random-s");
  require_in(ranges.max_random_l, options.max_random_l, "max-random-l");
  require_in(ranges.max_random_rotate_angle, options.max_random_rotate_angle, "max-random-rotate-angle");
  check_aspect_ratios(options);
  require_in(ranges.resize, options.resize, "resize");
  for (const int size : options.min_size_train) require_in(ranges.min_size_train, size, "min-size-train");
  check_resized_crop(options);
  require_in(ranges.max_random_shear_ratio, options.max_random_shear_ratio, "max-random-shear-ratio");
  check_scale(options);
  for (const float value : options.mean) require_in(ranges.mean, value, "rgb-mean");
  for (const float value : options.std) require_in(ranges.std, value, "rgb-std");
}

// A copy has a seed of its own.
RandomStream SampleKey::stream(RandomUse use) const {
  if (copy == 0) return {seed, use, epoch, sample};
  RandomStream seeds(seed, RandomUse::copy, copy, 0);
  const std::uint64_t low = seeds.bits();
  return {std::uint64_t{seeds.bits()} << 32 | low, use, epoch, sample};
}

bool only_crops(const Augment& options) { return options.pad_size == 0 && !warps(options); }

static bool jitters(const Augment& options) {
  return options.max_random_h != 0 || options.max_random_s != 0 || options.max_random_l != 0;
}

bool changes_pixels(const Augment& options) {
  return jitters(options) || has_policy(options) || options.pca_noise != 0;
}

nn::PixelPlace draw_place(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  const Window window = draw_window(Canvas(image, options, std::nullopt), options, Draws(key), shape);
  return {window.y - options.pad_size, window.x - options.pad_size, window.mirror, draw_cutout(options, key, shape)};
}

static HslShift draw_shift(const Augment& options, const Draws& draws) {
  return {draws.hue.jitter(options.max_random_h), draws.saturation.jitter(options.max_random_s),
          draws.lightness.jitter(options.max_random_l)};
}

static void jitter(const Augment& options, const Draws& draws, const nn::Shape& shape, float* out) {
  const HslShift shift = draw_shift(options, draws);
  const std::size_t plane = static_cast<std::size_t>(shape.h) * static_cast<std::size_t>(shape.w);
  if (shape.c == 3) {
    shift_hsl(out, out + plane, out + 2 * plane, plane, shift);
  } else {
    shift_lightness(out, plane, shift);
  }
}

void change_pixels(const Augment& options, const Draws& draws, const nn::Shape& shape, float* out) {
  if (jitters(options)) jitter(options, draws, shape, out);
  if (has_policy(options)) apply_policy(options, draws.key, shape, out);
  add_pca_noise(options, draws.key, shape, out);
}

void normalise(const Augment& options, const nn::Shape& shape, float* out) {
  const std::size_t plane = static_cast<std::size_t>(shape.h) * static_cast<std::size_t>(shape.w);
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape.c); ++c, out += plane) {
    const float mean = options.mean[c], std = options.std[c];
    for (std::size_t i = 0; i < plane; ++i) out[i] = (out[i] - mean) / std;
  }
}

// What is left to do when warp and padding are done.
static Augment without_canvas(Augment options) {
  options.pad_size = 0;
  options.max_random_rotate_angle = options.max_random_shear_ratio = 0;
  return options;
}

// All steps behind resize and its like, on an image as it is.
static void augment_as_it_is(const Image& image, const Augment& options, const Draws& draws, const nn::Shape& shape,
                             float* out) {
  const std::optional<Affine> affine = draw_affine(image, options, draws);
  const Canvas canvas(image, options, affine);
  const Window window = draw_window(canvas, options, draws, shape);
  // Whole numbers 0..255 first, in place of the output, where they become what the network takes.
  if (!affine && !window.resizes(canvas) && !options.reflect_pad) {
    copy_window(image, options, window, shape, out);
  } else {
    sample_window(canvas, window, shape, out);
  }
  change_pixels(options, draws, shape, out);
  normalise(options, shape, out);
}

static void augment_whole(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                          float* out) {
  const Draws draws(key);
  if (!options.random_resized_crop && options.resize == 0) return augment_as_it_is(image, options, draws, shape, out);
  if (options.random_resized_crop && !only_crops(options)) {
    thread_local Image canvas;
    Canvas(image, options, draw_affine(image, options, draws)).draw(canvas);
    return augment_whole(canvas, without_canvas(options), key, shape, out);
  }
  if (const auto window = draw_source_window(image.h, image.w, options, key, shape)) {
    fill_from_image(image, *window, options, shape, out);
    if (!changes_pixels(options)) return;
    change_pixels(options, draws, shape, out);
    return normalise(options, shape, out);
  }
  const Sides sides = with_shorter_edge(image.h, image.w, options.resize);
  augment_as_it_is(resize_image(image, sides.h, sides.w), options, draws, shape, out);
}

void augment(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape,
             std::span<float> out) {
  check_channels(image, shape);
  DTRAIN_CHECK(std::ssize(out) == shape.size(), "room for one sample");
  augment_whole(image, options, key, shape, out.data());
  cut_out(options, key, shape, out.data());
  erase(options, key, shape, out.data());
}

void decode_and_augment(ByteView payload, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                        Image& scratch, std::span<float> out) {
  const bool jpeg = detect_encoding(payload) == Encoding::jpeg;
  if (!jpeg || !fill_from_jpeg(payload, options, key, shape, out.data())) {
    decode_image(payload, shape.c, scratch);
    return augment(scratch, options, key, shape, out);
  }
  if (changes_pixels(options)) {
    change_pixels(options, Draws(key), shape, out.data());
    normalise(options, shape, out.data());
  }
  cut_out(options, key, shape, out.data());
  erase(options, key, shape, out.data());
}

}  // namespace dtrain::data
