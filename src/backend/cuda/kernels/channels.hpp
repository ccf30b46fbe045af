// Channels of one tensor put into another, and channels times a factor each. Tensors are [n, h, w, c]; a thread has the
// channels of one Pack of a pixel unless said otherwise.
#pragma once

#include "sums.hpp"

namespace dtrain::backend::cuda {

// Some channels of each row: c of them, from `first` on in rows of `width`.
struct ChannelRange {
  std::int32_t width, first;
};

template <typename T>
struct CopyChannels {
  const T* from;
  T* to;
  std::int64_t rows;
  std::int32_t c;
  ChannelRange source, target;
  DTRAIN_KERNEL std::int64_t threads() const { return rows * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    const std::int64_t row = at.part, first = at.channels.first;
    const T* const x = from + row * source.width + source.first + first;
    T* const y = to + row * target.width + target.first + first;
    const bool whole = (c | source.width | source.first | target.width | target.first) % Pack<T>::size == 0;
    if (whole) return store_whole(*reinterpret_cast<const Pack<T>*>(x), y);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (first + k < c) y[k] = x[k];
    }
  }
};

// y = x * factors, one factor for each channel of a sample.
template <typename T>
struct MultiplyChannels {
  const T* x;
  const T* factors;  // [n, c]
  T* y;
  std::int64_t n;
  std::int32_t c, pixels;
  DTRAIN_KERNEL std::int64_t threads() const { return n * pixels * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    Pack<T> pack = at.channels.load(x, at.part);
    const Pack<T> factor = at.channels.load(factors, at.part / pixels);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      narrow(widen(pack.values[k]) * widen(factor.values[k]), pack.values[k]);
    }
    at.channels.store(pack, y, at.part);
  }
};

// The gradient by the factors: sums of x * dy over a sample's pixels, in their order. Thread = Pack of a sample.
template <typename T>
struct FactorGradient {
  const T* x;
  const T* dy;
  T* dfactors;  // [n, c]
  std::int64_t n;
  std::int32_t c, pixels;
  DTRAIN_KERNEL std::int64_t threads() const { return n * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    float sums[Pack<T>::size] = {};
    for (std::int64_t row = at.part * pixels; row < (at.part + 1) * pixels; ++row) {
      const Pack<T> input = at.channels.load(x, row), gradient = at.channels.load(dy, row);
      DTRAIN_UNROLL
      for (int k = 0; k < Pack<T>::size; ++k) sums[k] += widen(input.values[k]) * widen(gradient.values[k]);
    }
    store_narrow(at.channels, sums, dfactors, at.part);
  }
};

}  // namespace dtrain::backend::cuda
