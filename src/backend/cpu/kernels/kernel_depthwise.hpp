// Gradients by the weights of a depthwise convolution on one channels-last sample. kDepthwiseChannels channels are
// computed together: their rows are widened once, with zeros for the padding, and stay in the core's first cache while
// all rows of the kernel go over them. A row of the kernel has its sums in registers.
#pragma once

#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

constexpr int kDepthwiseVectors = kDepthwiseChannels / kLanes;

// `count` of the pixels' channels become floats; the others of the block are 0.
template <typename T>
inline void widen_pixels(const T* from, int pixels, int channels, int count, float* to) {
  for (int pixel = 0; pixel < pixels; ++pixel, from += channels, to += kDepthwiseChannels) {
    if (count == kDepthwiseChannels) {
      for (int v = 0; v < kDepthwiseVectors; ++v) store(to + v * kLanes, load<Vector>(from + v * kLanes));
    } else {
      for (int c = 0; c < kDepthwiseChannels; ++c) to[c] = c < count ? load<float>(from + c) : 0.0f;
    }
  }
}

inline void fill_zeros(float* from, float* end) {
  for (; from < end; ++from) *from = 0.0f;
}

// sums[k] += the sum over a row's pixels of gradient * x[pixel * stride + k], k < Width; `pitch` lies between sums.
template <int Width>
inline void add_row_products(const float* x, const float* gradient, int pixels, int stride, float* sums,
                             int64_t pitch) {
  Vector total[Width][kDepthwiseVectors] = {};
  for (int pixel = 0; pixel < pixels; ++pixel) {
    for (int v = 0; v < kDepthwiseVectors; ++v) {
      const Vector g = load<Vector>(gradient + v * kLanes);
      for (int k = 0; k < Width; ++k) total[k][v] += g * load<Vector>(x + k * kDepthwiseChannels + v * kLanes);
    }
    gradient += kDepthwiseChannels;
    x += stride * kDepthwiseChannels;
  }
  for (int k = 0; k < Width; ++k) {
    for (int v = 0; v < kDepthwiseVectors; ++v) {
      float* const sum = sums + k * pitch + v * kLanes;
      store(sum, load<Vector>(sum) + total[k][v]);
    }
  }
}

inline void add_row_products(const Window& s, const float* x, const float* gradient, float* sums, int64_t pitch) {
  switch (s.kernel_w) {
    case 3:
      return add_row_products<3>(x, gradient, s.out_w, s.stride_w, sums, pitch);
    case 5:
      return add_row_products<5>(x, gradient, s.out_w, s.stride_w, sums, pitch);
    case 7:
      return add_row_products<7>(x, gradient, s.out_w, s.stride_w, sums, pitch);
    default:
      for (int k = 0; k < s.kernel_w; ++k) {
        add_row_products<1>(x + k * kDepthwiseChannels, gradient, s.out_w, s.stride_w, sums + k * pitch, pitch);
      }
  }
}

// One block of channels: `count` of them from the first on. `rows` has room for kernel_h rows of the sample, row y in
// place y % kernel_h until row y + kernel_h takes that, and behind them for one row of the gradient.
template <typename T>
void depthwise_block(const Window& s, const T* x, const T* gradient, int count, float* rows, float* sums,
                     int64_t pitch) {
  const int width = depthwise_row(s), reached = width - s.pad_w, pixels = s.in_w < reached ? s.in_w : reached;
  const int64_t row_size = int64_t{width} * kDepthwiseChannels;
  const auto place_of = [&](int y) { return rows + y % s.kernel_h * row_size; };
  float* const gradient_row = rows + s.kernel_h * row_size;
  fill_zeros(rows, gradient_row);  // the padding beside the pixels stays so
  int next = 0;                    // the first row that is not loaded
  for (int out_y = 0; out_y < s.out_h; ++out_y) {
    const int first = out_y * s.stride_h - s.pad_h, end = first + s.kernel_h;
    for (next = next < first ? first : next; next < end && next < s.in_h; ++next) {
      widen_pixels(x + int64_t{next} * s.in_w * s.channels, pixels, s.channels, count,
                   place_of(next) + int64_t{s.pad_w} * kDepthwiseChannels);
    }
    widen_pixels(gradient + int64_t{out_y} * s.out_w * s.channels, s.out_w, s.channels, count, gradient_row);
    for (int y = first < 0 ? 0 : first; y < end && y < s.in_h; ++y) {
      add_row_products(s, place_of(y), gradient_row, sums + (y - first) * s.kernel_w * pitch, pitch);
    }
  }
}

template <typename T>
void depthwise_weights(const Window& s, const void* x, const void* gradient, float* rows, float* sums) {
  const int64_t pitch = depthwise_pitch(s.channels);
  for (int c = 0; c < s.channels; c += kDepthwiseChannels) {
    const int left = s.channels - c, count = left < kDepthwiseChannels ? left : kDepthwiseChannels;
    depthwise_block(s, (const T*)x + c, (const T*)gradient + c, count, rows, sums + c, pitch);
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
