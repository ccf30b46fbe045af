// Activations, sums and changes of layout.
#pragma once

#include "../../curves.hpp"
#include "kernel_gelu.hpp"
#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// Calls work.template operator()<V>(position) for every element.
template <typename Work>
inline void each_element(int64_t count, Work work) {
  int64_t at = 0;
  for (; at + kLanes <= count; at += kLanes) work.template operator()<Vector>(at);
  for (; at < count; ++at) work.template operator()<float>(at);
}

template <typename V>
inline V sigmoid(V x) {
  const V e = exp_of_negative<V>(V{} - absolute(x));
  const V small = e / (e + 1.0f);
  return where_greater(V{}, x, small, 1.0f - small);
}

template <typename V>
inline V tanh_of(V x) {
  const V size = absolute(x);
  const V e = exp_of_negative<V>(size * -2.0f);
  const V large = (1.0f - e) / (e + 1.0f);
  const V q = x * x;  // near zero the quotient would cancel: the odd polynomial of Cephes' tanhf
  V p = q * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * q - 5.37397155531e-2f;
  p = p * q + 1.33314422036e-1f;
  p = p * q - 3.33332819422e-1f;
  const V near = p * q * x + x;
  const V far = where_greater(V{}, x, V{} - large, large);
  return where_greater(V{} + 0.625f, size, near, far);
}

template <typename V>
inline V silu_slope(V x) {
  const V s = sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

template <typename T, typename Function>
inline void map(const void* x, void* out, int64_t count, Function function) {
  each_element(
      count, [&]<typename V>(int64_t at) { store((T*)out + at, map_registers(function, load<V>((const T*)x + at))); });
}

template <typename T>
void activate(Curve curve, const void* x, void* out, int64_t count) {
  switch (curve) {
    case Curve::relu:
      return map<T>(x, out, count, []<typename V>(V v) { return relu(v); });
    case Curve::relu6:
      return map<T>(x, out, count, []<typename V>(V v) {
        const V low = relu(v), six = V{} + 6.0f;
        return where_greater(low, six, six, low);
      });
    case Curve::tanh:
      return map<T>(x, out, count, []<typename V>(V v) { return tanh_of(v); });
    case Curve::sigmoid:
      return map<T>(x, out, count, []<typename V>(V v) { return sigmoid(v); });
    case Curve::gelu:
      return map<T>(x, out, count, []<typename V>(V v) { return gelu(v); });
    case Curve::silu:
      return map<T>(x, out, count, []<typename V>(V v) { return v * sigmoid(v); });
    case Curve::hard_swish:
      return map<T>(x, out, count, []<typename V>(V v) { return hard_swish(v); });
    case Curve::hard_sigmoid:
      return map<T>(x, out, count, []<typename V>(V v) { return hard_sigmoid(v); });
  }
}

template <typename T, typename Function>
inline void map_pairs(const void* a, const void* b, void* out, int64_t count, Function function) {
  each_element(count, [&]<typename V>(int64_t at) {
    store((T*)out + at, map_registers(function, load<V>((const T*)a + at), load<V>((const T*)b + at)));
  });
}

// By the output y, from which the slope of most curves follows; `by` is the input x for gelu and those after it.
template <typename T>
void activate_backward(Curve curve, const void* gradient, const void* by, void* out, int64_t count) {
  switch (curve) {
    case Curve::relu:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V y) { return where_positive(y, g); });
    case Curve::relu6:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V y) {
        return where_positive<V>(y, where_greater(V{} + 6.0f, y, g, V{}));
      });
    case Curve::tanh:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V y) { return g * (1.0f - y * y); });
    case Curve::sigmoid:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V y) { return g * (y * (1.0f - y)); });
    case Curve::gelu:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V x) { return g * gelu_slope_of(x); });
    case Curve::silu:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V x) { return g * silu_slope(x); });
    case Curve::hard_swish:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V x) { return g * hard_swish_slope(x); });
    case Curve::hard_sigmoid:
      return map_pairs<T>(gradient, by, out, count, []<typename V>(V g, V x) { return g * hard_sigmoid_slope(x); });
  }
}

template <typename T>
void add(const void* a, const void* b, void* out, int64_t count) {
  map_pairs<T>(a, b, out, count, []<typename V>(V x, V y) { return x + y; });
}

template <typename T>
void multiply(const void* x, const float* factor, void* out, int64_t count) {
  each_element(count,
               [&]<typename V>(int64_t at) { store((T*)out + at, load<V>((const T*)x + at) * load<V>(factor + at)); });
}

template <typename T>
void shift(const void* x, const float* term, void* out, int64_t count) {
  each_element(count,
               [&]<typename V>(int64_t at) { store((T*)out + at, load<V>((const T*)x + at) + load<V>(term + at)); });
}

template <typename T>
void scale(const void* x, float factor, void* out, int64_t count) {
  map<T>(x, out, count, [factor]<typename V>(V v) { return v * factor; });
}

// out[column][row] = in[row][column]
template <typename To, typename From>
inline void transpose(const From* in, int64_t rows, int64_t columns, To* out) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) store(out + c * rows + r, load<float>(in + r * columns + c));
  }
}

template <typename T>
void load_image(const float* image, int channels, int64_t pixels, void* out) {
  T* const to = (T*)out;
  for (int64_t p = 0; p < pixels; ++p) {
    for (int c = 0; c < channels; ++c) store(to + p * channels + c, image[c * pixels + p]);
  }
}

template <typename T>
void to_planes(const void* x, int channels, int64_t pixels, void* out) {
  transpose((const T*)x, pixels, channels, (T*)out);
}

template <typename T>
void from_planes(const void* x, int channels, int64_t pixels, void* out) {
  transpose((const T*)x, channels, pixels, (T*)out);
}

template <typename T>
void to_float(const void* x, float* out, int64_t count) {
  each_element(count, [&]<typename V>(int64_t at) { store(out + at, load<V>((const T*)x + at)); });
}

template <typename T>
void from_float(const float* x, void* out, int64_t count) {
  each_element(count, [&]<typename V>(int64_t at) { store((T*)out + at, load<V>(x + at)); });
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
