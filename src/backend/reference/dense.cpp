#include "layers.hpp"

namespace dtrain::backend::reference {

void dense(const Samples& x, const float* weight, const float* bias, Samples& y) {
  const std::int64_t in = x.shape.size();
  for (int i = 0; i < x.n; ++i) {
    for (int out = 0; out < y.shape.c; ++out) {
      double sum = 0;
      for (std::int64_t k = 0; k < in; ++k) sum += static_cast<double>(weight[out * in + k]) * x.sample(i)[k];
      y.sample(i)[out] = static_cast<float>(sum + (bias ? bias[out] : 0.0f));
    }
  }
}

void dense_backward(const Samples& x, const float* weight, const Samples& dy, Samples& dx, float* dweight,
                    float* dbias) {
  const std::int64_t in = x.shape.size();
  for (int i = 0; i < x.n; ++i) {
    for (std::int64_t k = 0; k < in; ++k) {
      double sum = 0;
      for (int out = 0; out < dy.shape.c; ++out) sum += static_cast<double>(weight[out * in + k]) * dy.sample(i)[out];
      dx.sample(i)[k] += static_cast<float>(sum);
    }
  }
  for (int out = 0; out < dy.shape.c; ++out) {
    for (std::int64_t k = 0; k < in; ++k) {
      double sum = 0;
      for (int i = 0; i < x.n; ++i) sum += static_cast<double>(dy.sample(i)[out]) * x.sample(i)[k];
      dweight[out * in + k] += static_cast<float>(sum);
    }
    if (!dbias) continue;
    double sum = 0;
    for (int i = 0; i < x.n; ++i) sum += dy.sample(i)[out];
    dbias[out] += static_cast<float>(sum);
  }
}

}  // namespace dtrain::backend::reference
