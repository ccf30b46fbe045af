#include <algorithm>

#include <dtrain/base/math.hpp>

#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// value(channel) summed over the channels around one.
template <typename Value>
double sum_around(const nn::LocalResponseNorm& layer, int channel, int channels, Value value) {
  const int reach = layer.size / 2;
  double sum = 0;
  for (int c = std::max(channel - reach, 0); c <= std::min(channel + reach, channels - 1); ++c) sum += value(c);
  return sum;
}

struct ResponsePixel {
  const nn::LocalResponseNorm& layer;
  const Samples& x;
  int i, h, w;

  double at(int channel) const { return x.at(i, channel, h, w); }
  double share() const { return static_cast<double>(layer.alpha) / layer.size; }
  double divisor(int channel) const {
    const double squares = sum_around(layer, channel, x.shape.c, [&](int c) { return at(c) * at(c); });
    return layer.bias + share() * squares;
  }
};

template <typename Use>
void each_response_pixel(const nn::LocalResponseNorm& layer, const Samples& x, Use use) {
  for (int i = 0; i < x.n; ++i) {
    for (int h = 0; h < x.shape.h; ++h) {
      for (int w = 0; w < x.shape.w; ++w) use(ResponsePixel{layer, x, i, h, w});
    }
  }
}

}  // namespace

void local_response_norm(const nn::LocalResponseNorm& layer, const Samples& x, Samples& y) {
  each_response_pixel(layer, x, [&](const ResponsePixel& p) {
    for (int c = 0; c < x.shape.c; ++c) {
      y.at(p.i, c, p.h, p.w) = static_cast<float>(p.at(c) * portable_pow(p.divisor(c), -layer.beta));
    }
  });
}

// A channel counts for its own result, and for the divisors of those around it.
void local_response_norm_backward(const nn::LocalResponseNorm& layer, const Samples& x, const Samples& dy,
                                  Samples& dx) {
  each_response_pixel(layer, x, [&](const ResponsePixel& p) {
    for (int c = 0; c < x.shape.c; ++c) {
      const double through_divisors = sum_around(layer, c, x.shape.c, [&](int other) {
        return dy.at(p.i, other, p.h, p.w) * p.at(other) * portable_pow(p.divisor(other), -layer.beta - 1.0);
      });
      const double own = dy.at(p.i, c, p.h, p.w) * portable_pow(p.divisor(c), -layer.beta);
      dx.at(p.i, c, p.h, p.w) += static_cast<float>(own - 2 * layer.beta * p.share() * p.at(c) * through_divisors);
    }
  });
}

}  // namespace dtrain::backend::reference
