// Pooling of [n, h, w, c]. Thread = Pack of channels of one pixel of the result: where it is costs more than what is
// done there. Backward, each input element gathers from the windows that cover it, so nothing is added by two threads.
#pragma once

#include <cstdint>

#include "sums.hpp"

namespace dtrain::backend::cuda {

// One axis of a pooling: windows of `kernel` elements, `stride` apart, over a padded line.
struct PoolAxis {
  std::int32_t size, out, kernel, stride, pad;
  DTRAIN_KERNEL std::int32_t start(std::int32_t window) const { return window * stride - pad; }
  DTRAIN_KERNEL std::int32_t first(std::int32_t window) const { return start(window) > 0 ? start(window) : 0; }
  DTRAIN_KERNEL std::int32_t end(std::int32_t window) const {
    const std::int32_t end = start(window) + kernel;
    return end < size ? end : size;
  }
  // Elements spanned, padding included; what lies beyond the padded line never counts (MXNet, Caffe).
  DTRAIN_KERNEL std::int32_t padded(std::int32_t window) const {
    const std::int32_t end = start(window) + kernel;
    return (end < size + pad ? end : size + pad) - start(window);
  }
  // The windows that cover an element: [first_window, end_window).
  DTRAIN_KERNEL std::int32_t first_window(std::int32_t element) const {
    const std::int32_t before = element + pad - kernel;  // the last element that ends before a window at 0 would cover
    return before < 0 ? 0 : before / stride + 1;
  }
  DTRAIN_KERNEL std::int32_t end_window(std::int32_t element) const {
    const std::int32_t last = (element + pad) / stride + 1;
    return last < out ? last : out;
  }
};

struct PoolShape {
  std::int64_t n;
  std::int32_t c;
  PoolAxis h, w;
  bool count_include_pad;
  // Rows of c: pixels of the input and of the output.
  DTRAIN_KERNEL std::int64_t inputs() const { return n * h.size * w.size; }
  DTRAIN_KERNEL std::int64_t outputs() const { return n * h.out * w.out; }
  DTRAIN_KERNEL std::int64_t input_at(std::int64_t sample, std::int32_t y, std::int32_t x) const {
    return (sample * h.size + y) * w.size + x;
  }
  DTRAIN_KERNEL std::int64_t output_at(std::int64_t sample, std::int32_t y, std::int32_t x) const {
    return (sample * h.out + y) * w.out + x;
  }
  // Where in the window of (wy, wx) an element is, in h, w order.
  DTRAIN_KERNEL std::int32_t place(std::int32_t wy, std::int32_t wx, std::int32_t y, std::int32_t x) const {
    return (y - h.start(wy)) * w.kernel + (x - w.start(wx));
  }
  DTRAIN_KERNEL float divisor(std::int32_t y, std::int32_t x) const {
    if (count_include_pad) return static_cast<float>(h.padded(y) * w.padded(x));
    return static_cast<float>((h.end(y) - h.first(y)) * (w.end(x) - w.first(x)));
  }
};

// Where in its window a largest value is: a place there, or kNowhere. A byte says it for all but very large windows.
template <typename Place>
constexpr Place kNowhere = static_cast<Place>(-1);
constexpr std::int64_t kMostPlacesOfBytes = kNowhere<std::uint8_t>;

// What thread i < 2^32 has of [n, height, width, c].
template <typename T>
struct PoolPlace {
  std::int64_t row, sample;
  std::int32_t y, x;
  Channels<T> channels;
  DTRAIN_KERNEL PoolPlace(std::int64_t i, std::int32_t height, std::int32_t width, std::int32_t c) {
    const ChannelsOfPart<T> at(i, c);
    const auto pixel = static_cast<std::uint32_t>(at.part), columns = static_cast<std::uint32_t>(width),
               lines = static_cast<std::uint32_t>(height);
    const std::uint32_t line = pixel / columns, image = line / lines;
    row = pixel;
    sample = image;
    channels = at.channels;
    x = static_cast<std::int32_t>(pixel - line * columns);
    y = static_cast<std::int32_t>(line - image * lines);
  }
};

// What a window leaves for each channel of a Pack: the first largest value in h, w order, what it was made of, and
// where.
template <typename T, typename Place>
struct LargestInWindow {
  Pack<T> value, input;
  Place places[Pack<T>::size];
  // make(k, input), a T: the value of channel k.
  template <typename Make>
  DTRAIN_KERNEL LargestInWindow(const T* x, const PoolPlace<T>& at, const PoolShape& shape, Make make) {
    const std::int32_t top = shape.h.first(at.y), left = shape.w.first(at.x);
    input = at.channels.load(x, shape.input_at(at.sample, top, left));
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      value.values[k] = make(k, input.values[k]);
      places[k] = static_cast<Place>(shape.place(at.y, at.x, top, left));
    }
    for (std::int32_t py = top; py < shape.h.end(at.y); ++py) {
      for (std::int32_t px = left; px < shape.w.end(at.x); ++px) {
        const Pack<T> pack = at.channels.load(x, shape.input_at(at.sample, py, px));
        const auto place = static_cast<Place>(shape.place(at.y, at.x, py, px));
        DTRAIN_UNROLL
        for (int k = 0; k < Pack<T>::size; ++k) {
          const T made = make(k, pack.values[k]);
          if (!(widen(made) > widen(value.values[k]))) continue;
          value.values[k] = made;
          input.values[k] = pack.values[k];
          places[k] = place;
        }
      }
    }
  }
};

// What reaches an element of a max pooling's input from behind: one part or two (dy2 may be null).
template <typename T, typename Place>
struct MaxPoolIncoming {
  const T* dy;
  const T* dy2;
  const Place* places;
  PoolShape shape;
  DTRAIN_KERNEL void sum(const PoolPlace<T>& at, float (&sums)[Pack<T>::size]) const {
    Place largest[Pack<T>::size];
    for (std::int32_t wy = shape.h.first_window(at.y); wy < shape.h.end_window(at.y); ++wy) {
      for (std::int32_t wx = shape.w.first_window(at.x); wx < shape.w.end_window(at.x); ++wx) {
        const std::int64_t window = shape.output_at(at.sample, wy, wx);
        const Pack<T> gradient = at.channels.load(dy, window);
        Pack<T> second{};
        if (dy2) second = at.channels.load(dy2, window);
        at.channels.load_words(places + window * shape.c, largest);
        const auto mine = static_cast<Place>(shape.place(wy, wx, at.y, at.x));
        DTRAIN_UNROLL
        for (int k = 0; k < Pack<T>::size; ++k) {
          if (largest[k] == mine) sums[k] += widen(gradient.values[k]) + widen(second.values[k]);
        }
      }
    }
  }
};

// The first largest element in h, w order; its place is kept for the backward pass (places may be null).
template <typename T, typename Place = std::uint8_t>
struct MaxPool {
  const T* x;
  T* y;
  Place* places;
  PoolShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.outputs() * packs_of(shape.c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PoolPlace<T> at(i, shape.h.out, shape.w.out, shape.c);
    const LargestInWindow<T, Place> largest(x, at, shape, [](int, T value) { return value; });
    at.channels.store(largest.value, y, at.row);
    if (places) at.channels.store_words(largest.places, places + at.row * shape.c);
  }
};

template <typename T, typename Place = std::uint8_t>
struct MaxPoolGradient {
  MaxPoolIncoming<T, Place> incoming;
  T* dx;
  DTRAIN_KERNEL std::int64_t threads() const {
    return incoming.shape.inputs() * packs_of(incoming.shape.c, Pack<T>::size);
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PoolPlace<T> at(i, incoming.shape.h.size, incoming.shape.w.size, incoming.shape.c);
    float sums[Pack<T>::size] = {};
    incoming.sum(at, sums);
    store_narrow(at.channels, sums, dx, at.row);
  }
};

template <typename T>
struct AveragePool {
  const T* x;
  T* y;
  PoolShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.outputs() * packs_of(shape.c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PoolPlace<T> at(i, shape.h.out, shape.w.out, shape.c);
    float sums[Pack<T>::size] = {};
    for (std::int32_t py = shape.h.first(at.y); py < shape.h.end(at.y); ++py) {
      for (std::int32_t px = shape.w.first(at.x); px < shape.w.end(at.x); ++px) {
        const Pack<T> pack = at.channels.load(x, shape.input_at(at.sample, py, px));
        DTRAIN_UNROLL
        for (int k = 0; k < Pack<T>::size; ++k) sums[k] += widen(pack.values[k]);
      }
    }
    const float divisor = shape.divisor(at.y, at.x);
    DTRAIN_UNROLL
    for (float& sum : sums) sum /= divisor;
    store_narrow(at.channels, sums, y, at.row);
  }
};

template <typename T>
struct AveragePoolGradient {
  const T* dy;
  T* dx;
  PoolShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.inputs() * packs_of(shape.c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PoolPlace<T> at(i, shape.h.size, shape.w.size, shape.c);
    float sums[Pack<T>::size] = {};
    for (std::int32_t wy = shape.h.first_window(at.y); wy < shape.h.end_window(at.y); ++wy) {
      for (std::int32_t wx = shape.w.first_window(at.x); wx < shape.w.end_window(at.x); ++wx) {
        const Pack<T> gradient = at.channels.load(dy, shape.output_at(at.sample, wy, wx));
        const float divisor = shape.divisor(wy, wx);
        DTRAIN_UNROLL
        for (int k = 0; k < Pack<T>::size; ++k) sums[k] += widen(gradient.values[k]) / divisor;
      }
    }
    store_narrow(at.channels, sums, dx, at.row);
  }
};

}  // namespace dtrain::backend::cuda
