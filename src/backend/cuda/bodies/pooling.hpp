// Pooling of [n, h, w, c]. Thread = one element of the result. Backward, each input element gathers from the windows
// that cover it, so nothing is added by two threads.
#pragma once

#include <cstdint>

#include "../body.hpp"

namespace dtrain::backend::cuda {

// One axis of a pooling: windows of `kernel` elements, `stride` apart, over a padded line.
struct PoolAxis {
  std::int32_t size, out, kernel, stride, pad;
  DTRAIN_BODY std::int32_t first(std::int32_t window) const {
    const std::int32_t start = window * stride - pad;
    return start > 0 ? start : 0;
  }
  DTRAIN_BODY std::int32_t end(std::int32_t window) const {
    const std::int32_t end = window * stride - pad + kernel;
    return end < size ? end : size;
  }
  // Elements spanned, padding included; what lies beyond the padded line never counts (MXNet, Caffe).
  DTRAIN_BODY std::int32_t padded(std::int32_t window) const {
    const std::int32_t start = window * stride - pad, end = start + kernel;
    return (end < size + pad ? end : size + pad) - start;
  }
  // The windows that cover an element: [first_window, end_window).
  DTRAIN_BODY std::int32_t first_window(std::int32_t element) const {
    const std::int32_t before = element + pad - kernel;  // the last element that ends before a window at 0 would cover
    return before < 0 ? 0 : before / stride + 1;
  }
  DTRAIN_BODY std::int32_t end_window(std::int32_t element) const {
    const std::int32_t last = (element + pad) / stride + 1;
    return last < out ? last : out;
  }
};

struct PoolShape {
  std::int64_t n;
  std::int32_t c;
  PoolAxis h, w;
  bool count_include_pad;
  DTRAIN_BODY std::int64_t inputs() const { return n * h.size * w.size * c; }
  DTRAIN_BODY std::int64_t outputs() const { return n * h.out * w.out * c; }
  DTRAIN_BODY std::int64_t input_at(std::int64_t sample, std::int32_t y, std::int32_t x, std::int32_t channel) const {
    return ((sample * h.size + y) * w.size + x) * c + channel;
  }
  DTRAIN_BODY std::int64_t output_at(std::int64_t sample, std::int32_t y, std::int32_t x, std::int32_t channel) const {
    return ((sample * h.out + y) * w.out + x) * c + channel;
  }
  DTRAIN_BODY float divisor(std::int32_t y, std::int32_t x) const {
    if (count_include_pad) return static_cast<float>(h.padded(y) * w.padded(x));
    return static_cast<float>((h.end(y) - h.first(y)) * (w.end(x) - w.first(x)));
  }
};

// Place of element i of [n, height, width, c].
struct PoolPlace {
  std::int64_t sample;
  std::int32_t y, x, channel;
  DTRAIN_BODY PoolPlace(std::int64_t i, std::int32_t height, std::int32_t width, std::int32_t c) {
    channel = static_cast<std::int32_t>(i % c);
    i /= c;
    x = static_cast<std::int32_t>(i % width);
    i /= width;
    y = static_cast<std::int32_t>(i % height);
    sample = i / height;
  }
};

// The first largest element in h, w order; its pixel is kept for the backward pass (positions may be null).
template <typename T>
struct MaxPool {
  const T* x;
  T* y;
  std::int32_t* positions;
  PoolShape shape;
  DTRAIN_BODY std::int64_t threads() const { return shape.outputs(); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const PoolPlace at(i, shape.h.out, shape.w.out, shape.c);
    std::int32_t best_y = shape.h.first(at.y), best_x = shape.w.first(at.x);
    T best = x[shape.input_at(at.sample, best_y, best_x, at.channel)];
    for (std::int32_t py = shape.h.first(at.y); py < shape.h.end(at.y); ++py) {
      for (std::int32_t px = shape.w.first(at.x); px < shape.w.end(at.x); ++px) {
        const T value = x[shape.input_at(at.sample, py, px, at.channel)];
        if (widen(value) > widen(best)) {
          best = value;
          best_y = py;
          best_x = px;
        }
      }
    }
    y[i] = best;
    if (positions) positions[i] = best_y * shape.w.size + best_x;
  }
};

template <typename T>
struct MaxPoolGradient {
  const T* dy;
  const std::int32_t* positions;
  T* dx;
  PoolShape shape;
  DTRAIN_BODY std::int64_t threads() const { return shape.inputs(); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const PoolPlace at(i, shape.h.size, shape.w.size, shape.c);
    const std::int32_t mine = at.y * shape.w.size + at.x;
    float sum = 0;
    for (std::int32_t wy = shape.h.first_window(at.y); wy < shape.h.end_window(at.y); ++wy) {
      for (std::int32_t wx = shape.w.first_window(at.x); wx < shape.w.end_window(at.x); ++wx) {
        const std::int64_t window = shape.output_at(at.sample, wy, wx, at.channel);
        if (positions[window] == mine) sum += widen(dy[window]);
      }
    }
    narrow(sum, dx[i]);
  }
};

template <typename T>
struct AveragePool {
  const T* x;
  T* y;
  PoolShape shape;
  DTRAIN_BODY std::int64_t threads() const { return shape.outputs(); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const PoolPlace at(i, shape.h.out, shape.w.out, shape.c);
    float sum = 0;
    for (std::int32_t py = shape.h.first(at.y); py < shape.h.end(at.y); ++py) {
      for (std::int32_t px = shape.w.first(at.x); px < shape.w.end(at.x); ++px) {
        sum += widen(x[shape.input_at(at.sample, py, px, at.channel)]);
      }
    }
    narrow(sum / shape.divisor(at.y, at.x), y[i]);
  }
};

template <typename T>
struct AveragePoolGradient {
  const T* dy;
  T* dx;
  PoolShape shape;
  DTRAIN_BODY std::int64_t threads() const { return shape.inputs(); }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const PoolPlace at(i, shape.h.size, shape.w.size, shape.c);
    float sum = 0;
    for (std::int32_t wy = shape.h.first_window(at.y); wy < shape.h.end_window(at.y); ++wy) {
      for (std::int32_t wx = shape.w.first_window(at.x); wx < shape.w.end_window(at.x); ++wx) {
        sum += widen(dy[shape.output_at(at.sample, wy, wx, at.channel)]) / shape.divisor(wy, wx);
      }
    }
    narrow(sum, dx[i]);
  }
};

}  // namespace dtrain::backend::cuda
