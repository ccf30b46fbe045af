#include <algorithm>

#include "layers.hpp"

namespace dtrain::backend::reference {

void concat(std::span<const Samples* const> inputs, Samples& y) {
  for (int i = 0; i < y.n; ++i) {
    float* to = y.sample(i);
    for (const Samples* x : inputs) to = std::copy_n(x->sample(i), x->shape.size(), to);
  }
}

void concat_backward(const Samples& dy, std::int64_t first, Samples& dx) {
  for (int i = 0; i < dy.n; ++i) {
    const float* const from = dy.sample(i) + first;
    for (std::int64_t k = 0; k < dx.shape.size(); ++k) dx.sample(i)[k] += from[k];
  }
}

void multiply(const Samples& x, const Samples& factors, Samples& y) {
  const std::size_t pixels = static_cast<std::size_t>(x.shape.h) * x.shape.w;
  for (std::size_t k = 0; k < y.values.size(); ++k) y.values[k] = x.values[k] * factors.values[k / pixels];
}

void multiply_backward(const Samples& x, const Samples& factors, const Samples& dy, Samples& dx, Samples& dfactors) {
  const std::size_t pixels = static_cast<std::size_t>(x.shape.h) * x.shape.w;
  for (std::size_t channel = 0; channel < factors.values.size(); ++channel) {
    double sum = 0;
    for (std::size_t k = channel * pixels; k < (channel + 1) * pixels; ++k) {
      dx.values[k] += factors.values[channel] * dy.values[k];
      sum += static_cast<double>(x.values[k]) * dy.values[k];
    }
    dfactors.values[channel] += static_cast<float>(sum);
  }
}

}  // namespace dtrain::backend::reference
