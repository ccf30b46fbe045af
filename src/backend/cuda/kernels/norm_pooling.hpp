// A batch norm with the ReLU and the max pooling behind it. What the norm makes is several times as large as what the
// pooling leaves of it, and never written: forward keeps, for each window, what the norm made its largest value of. The
// sums of the backward pass are over these, since no other element gets a gradient from behind.
#pragma once

#include "norm_gradient.hpp"
#include "pooling.hpp"

namespace dtrain::backend::cuda {

// y = max pooling of relu(norm(x)). `largest` takes what y was made of, `places` where, or kNowhere where the ReLU lets
// nothing pass; both may be null. Thread = Pack of channels of one pixel of the result.
template <typename T>
struct NormMaxPool {
  const T* x;
  T* y;
  T* largest;
  std::uint8_t* places;
  NormCoefficients coefficients;
  PoolShape shape;
  DTRAIN_KERNEL std::int64_t threads() const { return shape.outputs() * packs_of(shape.c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PoolPlace<T> at(i, shape.h.out, shape.w.out, shape.c);
    const auto lines = load_lines(coefficients, at.channels);
    LargestInWindow<T, std::uint8_t> found(x, at, shape, [&](int k, T input) {
      const float value = lines.at(k, widen(input));
      T made;
      narrow(value < 0 ? 0.0f : value, made);
      return made;
    });
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      if (!(widen(found.value.values[k]) > 0)) found.places[k] = kNowhere<std::uint8_t>;
    }
    at.channels.store(found.value, y, at.row);
    if (largest) at.channels.store(found.input, largest, at.row);
    if (places) at.channels.store_words(found.places, places + at.row * shape.c);
  }
};

// dx, plus `addend` (may be null), by the means that NormGradientFinish left. Thread = Pack of channels of one pixel.
template <typename T>
struct NormMaxPoolGradient {
  MaxPoolIncoming<T, std::uint8_t> incoming;
  const T* x;
  const T* addend;
  T* dx;
  NormCoefficients coefficients;
  DTRAIN_KERNEL std::int64_t threads() const {
    return incoming.shape.inputs() * packs_of(incoming.shape.c, Pack<T>::size);
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const PoolPlace<T> at(i, incoming.shape.h.size, incoming.shape.w.size, incoming.shape.c);
    const Pack<T> inputs = at.channels.load(x, at.row);
    Pack<T> others{};
    if (addend) others = at.channels.load(addend, at.row);
    float values[Pack<T>::size] = {};
    incoming.sum(at, values);
    const auto lines = load_lines(coefficients, at.channels);
    const auto gradient_lines = load_gradient_lines(coefficients, at.channels);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      values[k] = gradient_lines.at(k, values[k], widen(inputs.values[k]), lines, 0.0f);
      if (addend) values[k] += widen(others.values[k]);
    }
    store_narrow(at.channels, values, dx, at.row);
  }
};

}  // namespace dtrain::backend::cuda
