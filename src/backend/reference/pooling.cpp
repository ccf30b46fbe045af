#include <algorithm>

#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// One window along one axis: the real elements [first, last) and how many padded elements it spans.
struct Span {
  int first, last;
  int padded;
};

// With `full` the last window may reach over the end of the padded input; what lies beyond never counts (MXNet, Caffe).
Span span_at(int position, int size, int kernel, int stride, int pad) {
  const int start = position * stride - pad;
  const int end = std::min(start + kernel, size + pad);
  return {std::max(start, 0), std::min(end, size), end - start};
}

struct Window {
  Span h, w;

  Window(const nn::Pooling& l, const nn::Shape& in, int out_h, int out_w)
      : h(l.global ? Span{0, in.h, in.h} : span_at(out_h, in.h, l.kernel_h, l.stride_h, l.pad_h)),
        w(l.global ? Span{0, in.w, in.w} : span_at(out_w, in.w, l.kernel_w, l.stride_w, l.pad_w)) {}

  template <typename Visit>
  void each(Visit visit) const {
    for (int y = h.first; y < h.last; ++y) {
      for (int x = w.first; x < w.last; ++x) visit(y, x);
    }
  }
  int divisor(bool count_include_pad) const {
    return count_include_pad ? h.padded * w.padded : (h.last - h.first) * (w.last - w.first);
  }
};

struct Position {
  int h, w;
};

// The first largest element in h, w order.
Position largest(const Samples& x, int i, int c, const Window& window) {
  Position best{window.h.first, window.w.first};
  window.each([&](int h, int w) {
    if (x.at(i, c, h, w) > x.at(i, c, best.h, best.w)) best = {h, w};
  });
  return best;
}

double average(const Samples& x, int i, int c, const Window& window, bool count_include_pad) {
  double sum = 0;
  window.each([&](int h, int w) { sum += x.at(i, c, h, w); });
  return sum / window.divisor(count_include_pad);
}

template <typename Visit>
void each_output(const Samples& y, Visit visit) {
  for (int i = 0; i < y.n; ++i) {
    for (int c = 0; c < y.shape.c; ++c) {
      for (int h = 0; h < y.shape.h; ++h) {
        for (int w = 0; w < y.shape.w; ++w) visit(i, c, h, w);
      }
    }
  }
}

}  // namespace

void pool(const nn::Pooling& layer, const Samples& x, Samples& y) {
  each_output(y, [&](int i, int c, int h, int w) {
    const Window window(layer, x.shape, h, w);
    if (layer.kind == nn::PoolingKind::max) {
      const Position best = largest(x, i, c, window);
      y.at(i, c, h, w) = x.at(i, c, best.h, best.w);
    } else {
      y.at(i, c, h, w) = static_cast<float>(average(x, i, c, window, layer.count_include_pad));
    }
  });
}

void pool_backward(const nn::Pooling& layer, const Samples& x, const Samples& dy, Samples& dx) {
  // Overlapping windows meet in one input element, so the sums are kept in double until the end.
  std::vector<double> sums(dx.values.size(), 0.0);
  const auto sum_at = [&](int i, int c, int h, int w) -> double& {
    return sums[static_cast<std::size_t>(&dx.at(i, c, h, w) - dx.values.data())];
  };
  each_output(dy, [&](int i, int c, int h, int w) {
    const Window window(layer, x.shape, h, w);
    const double gradient = dy.at(i, c, h, w);
    if (layer.kind == nn::PoolingKind::max) {
      const Position best = largest(x, i, c, window);
      sum_at(i, c, best.h, best.w) += gradient;
    } else {
      const int divisor = window.divisor(layer.count_include_pad);
      window.each([&](int wh, int ww) { sum_at(i, c, wh, ww) += gradient / divisor; });
    }
  });
  for (std::size_t k = 0; k < sums.size(); ++k) dx.values[k] += static_cast<float>(sums[k]);
}

}  // namespace dtrain::backend::reference
