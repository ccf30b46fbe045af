// Pooling of one channels-last sample. Windows reach into the padding; what lies beyond it never counts (MXNet, Caffe).
#pragma once

#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// The real elements [first, last) of a window along one axis, and how many it spans with padding.
struct Span {
  int first, last, padded;
};

inline Span span_at(int position, int size, int kernel, int stride, int pad) {
  const int start = position * stride - pad;
  const int end = start + kernel < size + pad ? start + kernel : size + pad;
  return {start > 0 ? start : 0, end < size ? end : size, end - start};
}

// Calls visit(output pixel, h, w, 1 / divisor) for each output pixel with its window.
template <typename Visit>
inline void each_window(const Window& s, Visit visit) {
  for (int oh = 0; oh < s.out_h; ++oh) {
    const Span h = span_at(oh, s.in_h, s.kernel_h, s.stride_h, s.pad_h);
    for (int ow = 0; ow < s.out_w; ++ow) {
      const Span w = span_at(ow, s.in_w, s.kernel_w, s.stride_w, s.pad_w);
      const int divisor = s.count_pad ? h.padded * w.padded : (h.last - h.first) * (w.last - w.first);
      visit(int64_t{oh} * s.out_w + ow, h, w, 1.0f / (float)divisor);
    }
  }
}

// Calls work.template operator()<V>(channel) for all channels.
template <typename Work>
inline void each_channel(int channels, Work work) {
  int c = 0;
  for (; c + kLanes <= channels; c += kLanes) work.template operator()<Vector>(c);
  for (; c < channels; ++c) work.template operator()<float>(c);
}

template <typename T>
void pool(const Window& s, const void* input, void* output) {
  const T* const x = (const T*)input;
  T* const out = (T*)output;
  each_window(s, [&](int64_t pixel, Span h, Span w, float share) {
    each_channel(s.channels, [&]<typename V>(int c) {
      const auto at = [&](int ih, int iw) { return load<V>(x + (int64_t{ih} * s.in_w + iw) * s.channels + c); };
      V value{};
      if (s.max && h.first < h.last && w.first < w.last) value = at(h.first, w.first);
      for (int ih = h.first; ih < h.last; ++ih) {
        for (int iw = w.first; iw < w.last; ++iw) {
          const V v = at(ih, iw);
          if (s.max)
            value = where_greater(v, value, v, value);
          else
            value += v;
        }
      }
      store(out + pixel * s.channels + c, s.max ? value : value * share);
    });
  });
}

// The gradient of a maximum goes to the window's first largest element, found again here instead of remembered.
template <typename T, typename V>
inline void spread_max(const Window& s, const T* x, V gradient, float* sums, Span h, Span w, int c) {
  const auto at = [&](int ih, int iw) { return (int64_t{ih} * s.in_w + iw) * s.channels + c; };
  V best = load<V>(x + at(h.first, w.first));
  for (int ih = h.first; ih < h.last; ++ih) {
    for (int iw = w.first; iw < w.last; ++iw) {
      const V v = load<V>(x + at(ih, iw));
      best = where_greater(v, best, v, best);
    }
  }
  for (int ih = h.first; ih < h.last; ++ih) {
    for (int iw = w.first; iw < w.last; ++iw) {
      const V v = load<V>(x + at(ih, iw));
      store(sums + at(ih, iw), load<V>(sums + at(ih, iw)) + where_equal(v, best, gradient, V{}));
      gradient = where_equal(v, best, V{}, gradient);  // spent
    }
  }
}

// `sums` is [in_h][in_w][channels] float, zero at the start: overlapping windows meet in one element.
template <typename T>
void pool_backward_sums(const Window& s, const T* x, const T* gradient, float* sums) {
  each_window(s, [&](int64_t pixel, Span h, Span w, float share) {
    if (h.first >= h.last || w.first >= w.last) return;
    each_channel(s.channels, [&]<typename V>(int c) {
      const V g = load<V>(gradient + pixel * s.channels + c);
      if (s.max) return spread_max<T, V>(s, x, g, sums, h, w, c);
      for (int ih = h.first; ih < h.last; ++ih) {
        for (int iw = w.first; iw < w.last; ++iw) {
          float* const to = sums + (int64_t{ih} * s.in_w + iw) * s.channels + c;
          store(to, load<V>(to) + g * share);
        }
      }
    });
  });
}

template <typename T>
void pool_backward(const Window& s, const void* x, const void* gradient, float* sums, void* out) {
  const int64_t count = int64_t{s.in_h} * s.in_w * s.channels;
  for (int64_t k = 0; k < count; ++k) sums[k] = 0;
  pool_backward_sums(s, (const T*)x, (const T*)gradient, sums);
  for (int64_t k = 0; k < count; ++k) store((T*)out + k, sums[k]);
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
