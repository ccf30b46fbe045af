// The first kernel of a step: samples as they were uploaded become a tensor.
#pragma once

#include <dtrain/nn/pixels.hpp>
#include <dtrain/nn/views.hpp>

#include "detection/pictures.hpp"
#include "pixel_blocks.hpp"

namespace dtrain::backend::cuda {

// Where the samples of a shard lie on the device. It changes from step to step while recorded work does not, so kernels
// read it there.
struct Samples {
  const float* images = nullptr;  // [n, c, h, w]; null: pixels
  nn::Pixels pixels;
  const std::int32_t* labels = nullptr;
  const std::uint32_t* sample_ids = nullptr;
  const std::int32_t* partners = nullptr;  // with shares, of samples with two labels; null: none has
  const float* shares = nullptr;
  PictureTable pictures = {};  // of a detector
  nn::ImageView view = {};
  bool begins_mean = true;  // of the views' logits
};

// The view of the samples, padded, cropped, mirrored, normalised and with pixels cut out, or images of floats.
struct Images {
  const Samples* from;
  std::int32_t c, h, w;
  struct Pixel {
    std::int64_t sample;
    std::int32_t row, column;  // of the image
  };
  // Row y and column x of the view.
  DTRAIN_KERNEL Pixel pixel(std::int64_t sample, std::int32_t y, std::int32_t x) const {
    return {sample, nn::view_row(from->view, y, h), nn::view_column(from->view, x, w)};
  }
  DTRAIN_KERNEL float value(const Pixel& at, std::int32_t k) const {
    return from->images ? from->images[((at.sample * c + k) * h + at.row) * w + at.column]
                        : nn::pixel_value(from->pixels, at.sample, c, w, at.row, at.column, k);
  }
};

// What the samples show: one class each, or two by their shares.
struct Targets {
  const std::int32_t* labels;
  const std::int32_t* partners = nullptr;  // null, with shares: one class each
  const float* shares = nullptr;           // of the labels
  DTRAIN_KERNEL std::int32_t partner(std::int64_t sample) const { return partners ? partners[sample] : labels[sample]; }
  DTRAIN_KERNEL double share(std::int64_t sample) const { return shares ? static_cast<double>(shares[sample]) : 1.0; }
  // Of class k.
  DTRAIN_KERNEL double own(std::int64_t sample, std::int64_t k) const {
    const double first = share(sample);
    return (k == labels[sample] ? first : 0) + (k == partner(sample) ? 1 - first : 0);
  }
};

// Places of their own for labels and sample ids.
struct SampleNames {
  std::int32_t* labels;
  std::uint32_t* ids;
  std::int32_t* partners = nullptr;
  float* shares = nullptr;
  DTRAIN_KERNEL void load(const Samples& from, std::int64_t sample) const {
    labels[sample] = from.labels[sample];
    ids[sample] = from.sample_ids[sample];
    if (!partners) return;
    partners[sample] = from.partners ? from.partners[sample] : from.labels[sample];
    shares[sample] = from.shares ? from.shares[sample] : 1.0f;
  }
};

// A place of n planes of h x w, i < 2^32: a GPU divides 32 bits several times as fast as 64.
struct PlanePlace {
  std::int64_t sample;
  std::int32_t y, x;
  DTRAIN_KERNEL static PlanePlace of(std::int64_t i, std::int32_t h, std::int32_t w) {
    const auto place = static_cast<std::uint32_t>(i), row = place / static_cast<std::uint32_t>(w);
    const std::uint32_t sample = row / static_cast<std::uint32_t>(h);
    return {sample, static_cast<std::int32_t>(row - sample * static_cast<std::uint32_t>(h)),
            static_cast<std::int32_t>(place - row * static_cast<std::uint32_t>(w))};
  }
  DTRAIN_KERNEL bool is_first() const { return y == 0 && x == 0; }
};

// y [n, h, w, c]. Thread = pixel of y.
template <typename T>
struct LoadSamples {
  Images images;
  SampleNames names;
  T* y;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * images.h * images.w; }  // below 2^32
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PlanePlace at = PlanePlace::of(i, images.h, images.w);
    const Images::Pixel pixel = images.pixel(at.sample, at.y, at.x);
    for (std::int32_t k = 0; k < images.c; ++k) narrow(images.value(pixel, k), y[i * images.c + k]);
    if (at.is_first()) names.load(*images.from, at.sample);
  }
};

// y [n, blocks.h, blocks.w, blocks.channels], of images of C channels. Thread = block of y.
template <typename T, int C>
struct LoadBlocks {
  static constexpr int channels = PixelBlocks::channels_of(C, Pack<Half>::size);  // blocks have no other number
  Images images;
  SampleNames names;
  T* y;
  PixelBlocks blocks;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * blocks.h * blocks.w; }  // below 2^32
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    constexpr int kSide = PixelBlocks::side;
    const PlanePlace at = PlanePlace::of(i, blocks.h, blocks.w);
    const std::int32_t top = kSide * at.y - blocks.pad_h, left = kSide * at.x - blocks.pad_w;
    float values[channels] = {};
    DTRAIN_UNROLL
    for (int pixel = 0; pixel < kSide * kSide; ++pixel) {
      const std::int32_t row = top + pixel / kSide, column = left + pixel % kSide;
      if (row < 0 || row >= images.h || column < 0 || column >= images.w) continue;
      const Images::Pixel from = images.pixel(at.sample, row, column);
      DTRAIN_UNROLL
      for (int k = 0; k < C; ++k) values[pixel * C + k] = images.value(from, k);
    }
    DTRAIN_UNROLL
    for (int first = 0; first < channels; first += Pack<T>::size) {
      Pack<T> pack;
      DTRAIN_UNROLL
      for (int j = 0; j < Pack<T>::size; ++j) narrow(values[first + j], pack.values[j]);
      store_whole(pack, y + i * channels + first);
    }
    if (at.is_first()) names.load(*images.from, at.sample);
  }
};

}  // namespace dtrain::backend::cuda
