// Convolution by its definition: what is computed where cuDNN has no deterministic algorithm for a shape, and what
// tests on a CPU run in its place. x [n, h, w, in], y [n, h, w, out], weights [out, kernel_h, kernel_w, in / groups].
#pragma once

#include "sums.hpp"

namespace dtrain::backend::cuda {

struct ConvolutionShape {
  std::int32_t n;
  std::int32_t in, in_h, in_w;
  std::int32_t out, out_h, out_w;
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  std::int32_t groups;
  std::int32_t dilation_h = 1, dilation_w = 1;
  friend bool operator==(const ConvolutionShape&, const ConvolutionShape&) = default;

  // A product of matrices: [n, in] times [in, out].
  static constexpr ConvolutionShape one_pixel(std::int32_t n, std::int32_t in, std::int32_t out) {
    return {n, in, 1, 1, out, 1, 1, 1, 1, 1, 1, 0, 0, 1};
  }

  DTRAIN_KERNEL std::int64_t inputs() const { return std::int64_t{n} * in_h * in_w * in; }
  DTRAIN_KERNEL std::int64_t outputs() const { return std::int64_t{n} * out_h * out_w * out; }
  DTRAIN_KERNEL std::int64_t weights() const { return std::int64_t{out} * kernel_h * kernel_w * group_in(); }
  DTRAIN_KERNEL std::int32_t group_in() const { return in / groups; }
  DTRAIN_KERNEL std::int32_t group_out() const { return out / groups; }
  DTRAIN_KERNEL std::int64_t input_at(std::int64_t sample, std::int32_t y, std::int32_t x) const {
    return ((sample * in_h + y) * in_w + x) * in;
  }
  DTRAIN_KERNEL std::int64_t output_at(std::int64_t sample, std::int32_t y, std::int32_t x) const {
    return ((sample * out_h + y) * out_w + x) * out;
  }
  DTRAIN_KERNEL std::int64_t weight_at(std::int32_t to, std::int32_t y, std::int32_t x) const {
    return ((std::int64_t{to} * kernel_h + y) * kernel_w + x) * group_in();
  }
};

// Thread = element of y.
template <typename T>
struct Convolve {
  const T* x;
  const T* weights;
  T* y;
  ConvolutionShape s;
  DTRAIN_KERNEL std::int64_t threads() const { return s.outputs(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const auto to = static_cast<std::int32_t>(i % s.out);
    const std::int64_t place = i / s.out;
    const auto ox = static_cast<std::int32_t>(place % s.out_w);
    const auto oy = static_cast<std::int32_t>(place / s.out_w % s.out_h);
    const std::int64_t sample = place / s.out_w / s.out_h;
    const std::int32_t first_in = to / s.group_out() * s.group_in();
    float sum = 0;
    for (std::int32_t ky = 0; ky < s.kernel_h; ++ky) {
      const std::int32_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
      if (iy < 0 || iy >= s.in_h) continue;
      for (std::int32_t kx = 0; kx < s.kernel_w; ++kx) {
        const std::int32_t ix = ox * s.stride_w - s.pad_w + kx * s.dilation_w;
        if (ix < 0 || ix >= s.in_w) continue;
        const T* const row = x + s.input_at(sample, iy, ix) + first_in;
        const T* const weight = weights + s.weight_at(to, ky, kx);
        for (std::int32_t k = 0; k < s.group_in(); ++k) sum += widen(row[k]) * widen(weight[k]);
      }
    }
    narrow(sum, y[i]);
  }
};

// Thread = element of dx.
template <typename T>
struct ConvolveBackwardData {
  const T* dy;
  const T* weights;
  T* dx;
  ConvolutionShape s;
  DTRAIN_KERNEL std::int64_t threads() const { return s.inputs(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const auto from = static_cast<std::int32_t>(i % s.in);
    const std::int64_t place = i / s.in;
    const auto ix = static_cast<std::int32_t>(place % s.in_w);
    const auto iy = static_cast<std::int32_t>(place / s.in_w % s.in_h);
    const std::int64_t sample = place / s.in_w / s.in_h;
    const std::int32_t group = from / s.group_in(), in_group = from % s.group_in();
    float sum = 0;
    for (std::int32_t ky = 0; ky < s.kernel_h; ++ky) {
      const std::int32_t up = iy + s.pad_h - ky * s.dilation_h;
      if (up < 0 || up % s.stride_h != 0 || up / s.stride_h >= s.out_h) continue;
      for (std::int32_t kx = 0; kx < s.kernel_w; ++kx) {
        const std::int32_t left = ix + s.pad_w - kx * s.dilation_w;
        if (left < 0 || left % s.stride_w != 0 || left / s.stride_w >= s.out_w) continue;
        const T* const gradient = dy + s.output_at(sample, up / s.stride_h, left / s.stride_w);
        for (std::int32_t to = group * s.group_out(); to < (group + 1) * s.group_out(); ++to) {
          sum += widen(gradient[to]) * widen(weights[s.weight_at(to, ky, kx) + in_group]);
        }
      }
    }
    narrow(sum, dx[i]);
  }
};

// Thread = part of the rows of dy and weight: out[part][weight].
template <typename T>
struct ConvolveBackwardWeights {
  const T* x;
  const T* dy;
  float* sums;
  ConvolutionShape s;
  RowParts cut;  // of the n * out_h * out_w rows of dy
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * s.weights(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t part = i / s.weights(), weight = i % s.weights();
    const auto in_group = static_cast<std::int32_t>(weight % s.group_in());
    const std::int64_t place = weight / s.group_in();
    const auto kx = static_cast<std::int32_t>(place % s.kernel_w);
    const auto ky = static_cast<std::int32_t>(place / s.kernel_w % s.kernel_h);
    const auto to = static_cast<std::int32_t>(place / s.kernel_w / s.kernel_h);
    const std::int32_t from = to / s.group_out() * s.group_in() + in_group;
    float sum = 0;
    for (std::int64_t row = part; row < cut.rows; row += cut.parts) {
      const auto ox = static_cast<std::int32_t>(row % s.out_w);
      const auto oy = static_cast<std::int32_t>(row / s.out_w % s.out_h);
      const std::int32_t iy = oy * s.stride_h - s.pad_h + ky * s.dilation_h;
      const std::int32_t ix = ox * s.stride_w - s.pad_w + kx * s.dilation_w;
      if (iy < 0 || iy >= s.in_h || ix < 0 || ix >= s.in_w) continue;
      sum += widen(x[s.input_at(row / s.out_w / s.out_h, iy, ix) + from]) * widen(dy[row * s.out + to]);
    }
    sums[i] = sum;
  }
};

// dw[weight] = the sum of its parts. Thread = weight.
template <typename T>
struct FinishWeights {
  const float* sums;
  T* dw;
  std::int64_t weights;
  std::int32_t parts;
  DTRAIN_KERNEL std::int64_t threads() const { return weights; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    double sum = 0;
    for (std::int32_t part = 0; part < parts; ++part) sum += sums[part * weights + i];
    narrow(static_cast<float>(sum), dw[i]);
  }
};

// Parts of ConvolveBackwardWeights: enough for many threads, few enough that the parts' sums stay small. They grow with
// the rows.
inline RowParts cut_weight_rows(const ConvolutionShape& s) {
  constexpr std::int64_t kThreads = 1 << 16;
  const std::int64_t rows = std::int64_t{s.n} * s.out_h * s.out_w;
  const std::int64_t parts = std::min(packs_of(rows, kFewestRows), kThreads / s.weights());
  return {.rows = rows, .parts = static_cast<std::int32_t>(std::max<std::int64_t>(1, parts))};
}

}  // namespace dtrain::backend::cuda
