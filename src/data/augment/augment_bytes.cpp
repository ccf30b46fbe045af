// Samples as bytes. The backend, which normalises them, also does the cutout, and pad, crop and mirror if no other step
// comes before them.
#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/data/augment.hpp>

#include "augment_steps.hpp"
#include "cutout.hpp"
#include "warp.hpp"
#include "window_pixels.hpp"

namespace dtrain::data {
namespace {

bool only_pads_and_crops(const Augment& options) {
  return !warps(options) && !changes_pixels(options) && options.resize == 0 && !options.random_resized_crop &&
         !options.reflect_pad;
}

Augment whole_numbers(Augment options) {
  options.mean = {};
  options.std = {1, 1, 1};
  options.cutout = 0;
  return options;
}

std::uint8_t byte_of(float value) { return static_cast<std::uint8_t>(static_cast<int>(value)); }

void interleave(const float* __restrict r, const float* __restrict g, const float* __restrict b, int count,
                std::uint8_t* __restrict to) {
  for (int i = 0; i < count; ++i) {
    to[3 * i] = byte_of(r[i]);
    to[3 * i + 1] = byte_of(g[i]);
    to[3 * i + 2] = byte_of(b[i]);
  }
}

// Planes of whole numbers 0..255 as the top left corner of the stored picture.
void store_planes(const float* planes, const nn::Shape& shape, const nn::Shape& stored, std::uint8_t* out) {
  const std::ptrdiff_t plane = std::ptrdiff_t{shape.h} * shape.w;
  for (int y = 0; y < shape.h; ++y, planes += shape.w, out += std::ptrdiff_t{stored.w} * stored.c) {
    if (shape.c == 3) {
      interleave(planes, planes + plane, planes + 2 * plane, shape.w, out);
    } else {
      std::transform(planes, planes + shape.w, out, byte_of);
    }
  }
}

// One a thread: no memory is taken in a steady epoch.
std::vector<float>& planes_for(const nn::Shape& shape) {
  thread_local std::vector<float> planes;
  planes.resize(static_cast<std::size_t>(shape.size()));
  return planes;
}

std::ptrdiff_t bytes_of_row(const nn::Shape& stored) { return std::ptrdiff_t{stored.w} * stored.c; }

// The place of a sample that is all that was stored, or its top left corner.
nn::PixelPlace in_corner(const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  return {.cutout = draw_cutout(options, key, shape)};
}

void check_room(const Augment& options, const nn::Shape& stored, std::span<std::uint8_t> out) {
  DTRAIN_CHECK(std::ssize(out) == stored.size(), "room for one sample");
  DTRAIN_CHECK(options.random_erasing == 0, "noise is no bytes");
}

}  // namespace

nn::PixelScale pixel_scale(const Augment& options) {
  nn::PixelScale scale{.fill = static_cast<float>(options.fill_value)};
  std::ranges::copy(options.mean, scale.mean);
  std::ranges::copy(options.std, scale.std);
  return scale;
}

nn::Shape stored_shape(ByteView payload, const Augment& options, const nn::Shape& shape) {
  constexpr int kMostTimesTheOutput = 2;
  if (!only_pads_and_crops(options) || detect_encoding(payload) == Encoding::jpeg) return shape;
  Image image;
  decode_image(payload, shape.c, image);
  const nn::Shape found{image.c, image.h, image.w};
  const bool covers = found.h >= shape.h && found.w >= shape.w;
  return covers && found.size() <= kMostTimesTheOutput * shape.size() ? found : shape;
}

nn::PixelPlace augment_to_bytes(const Image& image, const Augment& options, const SampleKey& key,
                                const nn::Shape& shape, const nn::Shape& stored, std::span<std::uint8_t> out) {
  check_room(options, stored, out);
  if (only_pads_and_crops(options) && image.h == stored.h && image.w == stored.w) {
    std::ranges::copy(image.pixels, out.begin());
    return draw_place(image, options, key, shape);
  }
  if (changes_pixels(options) || !bytes_from_image(image, options, key, shape, bytes_of_row(stored), out.data())) {
    std::vector<float>& planes = planes_for(shape);
    augment(image, whole_numbers(options), key, shape, planes);
    store_planes(planes.data(), shape, stored, out.data());
  }
  return in_corner(options, key, shape);
}

nn::PixelPlace decode_to_bytes(ByteView payload, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                               const nn::Shape& stored, Image& scratch, std::span<std::uint8_t> out) {
  check_room(options, stored, out);
  const bool jpeg = detect_encoding(payload) == Encoding::jpeg;
  if (jpeg && changes_pixels(options)) {
    std::vector<float>& planes = planes_for(shape);
    decode_and_augment(payload, whole_numbers(options), key, shape, scratch, planes);
    store_planes(planes.data(), shape, stored, out.data());
    return in_corner(options, key, shape);
  }
  if (jpeg && bytes_from_jpeg(payload, options, key, shape, bytes_of_row(stored), out.data()))
    return in_corner(options, key, shape);
  decode_image(payload, shape.c, scratch);
  return augment_to_bytes(scratch, options, key, shape, stored, out);
}

}  // namespace dtrain::data
