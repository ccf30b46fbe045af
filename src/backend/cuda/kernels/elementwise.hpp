// Kernels that work element by element. Tensors are [n, h, w, c]; a thread moves one Pack unless said otherwise.
#pragma once

#include <dtrain/base/math.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/nn/graph.hpp>

#include "../../curves.hpp"
#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// to[i] = value, i < total.
struct Fill {
  float* to;
  std::int64_t total;
  float value;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<float>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    Pack<float> pack;
    for (float& element : pack.values) element = value;
    store_pack(pack, to, i * Pack<float>::size, total);
  }
};

// to[i] += from[i]: the right child joins the left one.
struct Accumulate {
  const float* from;
  float* to;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<float>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<float>::size;
    Pack<float> sum = load_pack(to, first, total);
    const Pack<float> more = load_pack(from, first, total);
    for (int k = 0; k < Pack<float>::size; ++k) sum.values[k] += more.values[k];
    store_pack(sum, to, first, total);
  }
};

struct Copy {
  const float* from;
  float* to;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<float>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<float>::size;
    store_pack(load_pack(from, first, total), to, first, total);
  }
};

// Values of two buffers change places, wherever these begin. Thread = value.
struct Exchange {
  float* a;
  float* b;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const float kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
};

// Elements of each sample from h, w, c order to c, h, w order (to_channels_first), or back. One thread an element.
template <typename T>
struct Reorder {
  const T* x;
  T* y;
  std::int64_t n;
  std::int32_t c, pixels;
  bool to_channels_first;
  DTRAIN_KERNEL std::int64_t threads() const { return n * c * pixels; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t row = i / c, channel = i % c;  // of the side in h, w, c order
    const std::int64_t sample = row / pixels, pixel = row % pixels;
    const std::int64_t other = (sample * c + channel) * pixels + pixel;
    if (to_channels_first) {
      y[other] = x[i];
    } else {
      y[i] = x[other];
    }
  }
};

template <typename T>
struct Add {
  const T* a;
  const T* b;
  T* y;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    const Pack<T> left = load_pack(a, first, total), right = load_pack(b, first, total);
    Pack<T> sum;
    for (int k = 0; k < Pack<T>::size; ++k) narrow(widen(left.values[k]) + widen(right.values[k]), sum.values[k]);
    store_pack(sum, y, first, total);
  }
};

// y = x * factor.
template <typename T>
struct Scale {
  const T* x;
  T* y;
  std::int64_t total;
  float factor;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> pack = load_pack(x, first, total);
    for (T& value : pack.values) narrow(widen(value) * factor, value);
    store_pack(pack, y, first, total);
  }
};

// What is added to rows of c values: one number a channel, or nothing.
struct ChannelBias {
  const float* values = nullptr;
  std::int32_t c = 1;
  // Element first + k, widened, with what is added to it.
  template <typename T>
  DTRAIN_KERNEL void add(const Pack<T>& pack, std::int64_t first, float (&to)[Pack<T>::size]) const {
    auto channel = values ? static_cast<std::int32_t>(first % c) : 0;
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      to[k] = widen(pack.values[k]);
      if (!values) continue;
      to[k] += values[channel];
      if (++channel == c) channel = 0;
    }
  }
};

// In place.
template <typename T>
struct AddBias {
  T* y;
  ChannelBias bias;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> pack = load_pack(y, first, total);
    float sums[Pack<T>::size];
    bias.add(pack, first, sums);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) narrow(sums[k], pack.values[k]);
    store_pack(pack, y, first, total);
  }
};

DTRAIN_KERNEL inline double exponential(double x) {
  return x != x ? x : portable_exp(x < -700 ? -700 : x > 700 ? 700 : x);
}
DTRAIN_KERNEL inline double sigmoid(double x) { return 1 / (1 + exponential(-x)); }

// y, by x + bias. NaN stays NaN, so that a broken step shows in its loss.
template <typename T>
struct Activate {
  const T* x;
  ChannelBias bias;
  T* y;
  std::int64_t total;
  nn::ActivationKind kind;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_KERNEL float value(float v) const {
    switch (kind) {
      case nn::ActivationKind::relu:
        return v < 0 ? 0 : v;
      case nn::ActivationKind::tanh:
        return static_cast<float>(2 * sigmoid(2.0 * v) - 1);
      case nn::ActivationKind::sigmoid:
        return static_cast<float>(sigmoid(v));
      case nn::ActivationKind::relu6:
        return v < 0 ? 0 : v > 6 ? 6 : v;
      case nn::ActivationKind::gelu:
        return gelu(v);
      case nn::ActivationKind::silu:
        return static_cast<float>(v * sigmoid(v));
      case nn::ActivationKind::hard_swish:
        return hard_swish(v);
      case nn::ActivationKind::hard_sigmoid:
        return hard_sigmoid(v);
    }
    return v;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> pack = load_pack(x, first, total);
    float inputs[Pack<T>::size];
    bias.add(pack, first, inputs);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) narrow(value(inputs[k]), pack.values[k]);
    store_pack(pack, y, first, total);
  }
};

// dx from dy and `by`: the activation's output, or its input where slope_is_by_input(), which `bias` belongs to.
template <typename T>
struct ActivateGradient {
  const T* dy;
  const T* by;
  ChannelBias bias;
  T* dx;
  std::int64_t total;
  nn::ActivationKind kind;
  DTRAIN_KERNEL std::int64_t threads() const { return packs_of(total, Pack<T>::size); }
  DTRAIN_KERNEL float slope(float v) const {
    switch (kind) {
      case nn::ActivationKind::relu:
        return v > 0 ? 1 : 0;
      case nn::ActivationKind::tanh:
        return 1 - v * v;
      case nn::ActivationKind::sigmoid:
        return v * (1 - v);
      case nn::ActivationKind::relu6:
        return v > 0 && v < 6 ? 1 : 0;
      case nn::ActivationKind::gelu:
        return gelu_slope(v);
      case nn::ActivationKind::silu:
        return static_cast<float>(sigmoid(v) * (1 + v * (1 - sigmoid(v))));
      case nn::ActivationKind::hard_swish:
        return hard_swish_slope(v);
      case nn::ActivationKind::hard_sigmoid:
        return hard_sigmoid_slope(v);
    }
    return 1;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t first = i * Pack<T>::size;
    Pack<T> gradient = load_pack(dy, first, total);
    float values[Pack<T>::size];
    bias.add(load_pack(by, first, total), first, values);
    DTRAIN_UNROLL
    for (int k = 0; k < Pack<T>::size; ++k) {
      narrow(slope(values[k]) * widen(gradient.values[k]), gradient.values[k]);
    }
    store_pack(gradient, dx, first, total);
  }
};

// The key of a step where kernels can read it: it changes from step to step while recorded work does not.
struct DropoutKey {
  std::uint32_t seed_low, seed_high, epoch;
};

// y = x where kept, scaled; zero elsewhere: the mask of <dtrain/backend/dropout.hpp>, whose elements are counted in c,
// h, w order. Element 0 may decide for a whole sample. Forward and backward alike. One thread an element.
template <typename T>
struct Drop {
  const T* x;
  T* y;
  const DropoutKey* key;
  const std::uint32_t* sample_ids;
  std::int64_t n;
  std::int32_t c, pixels;
  std::int32_t node;
  double threshold;  // p * 2^32
  float scale;
  bool whole_samples;
  DTRAIN_KERNEL std::int64_t threads() const { return n * c * pixels; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t row = i / c, channel = i % c;
    const std::int64_t sample = row / pixels;
    const auto element = whole_samples ? 0 : static_cast<std::uint32_t>(channel * pixels + row % pixels);
    const PhiloxCounter words =
        philox({element / 4, static_cast<std::uint32_t>(node), sample_ids[sample], key->epoch},
               {key->seed_low, key->seed_high ^ static_cast<std::uint32_t>(RandomUse::dropout)});
    const bool kept = static_cast<double>(words[element % 4]) >= threshold;
    narrow(kept ? widen(x[i]) * scale : 0.0f, y[i]);
  }
};

}  // namespace dtrain::backend::cuda
