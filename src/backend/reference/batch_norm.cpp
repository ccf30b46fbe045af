// Ioffe and Szegedy 2015, equations of its figure 1 and section 3.
#include <cmath>

#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// Calls visit(value index) for every element of channel c.
template <typename Visit>
void each_of_channel(const Samples& x, int c, Visit visit) {
  const std::int64_t plane = std::int64_t{x.shape.h} * x.shape.w;
  for (int i = 0; i < x.n; ++i) {
    const std::int64_t first = (std::int64_t{i} * x.shape.c + c) * plane;
    for (std::int64_t k = first; k < first + plane; ++k) visit(static_cast<std::size_t>(k));
  }
}

double elements_of_channel(const Samples& x) { return static_cast<double>(x.n) * x.shape.h * x.shape.w; }

}  // namespace

Moments moments_of(const Samples& x) {
  Moments moments;
  const double count = elements_of_channel(x);
  for (int c = 0; c < x.shape.c; ++c) {
    double sum = 0;
    each_of_channel(x, c, [&](std::size_t k) { sum += x.values[k]; });
    const double mean = sum / count;
    double squares = 0;
    each_of_channel(x, c, [&](std::size_t k) { squares += (x.values[k] - mean) * (x.values[k] - mean); });
    moments.mean.push_back(mean);
    moments.variance.push_back(squares / count);
  }
  return moments;
}

namespace {
double scale_of(const nn::BatchNorm& layer, const Moments& moments, const float* gamma, int channel) {
  const auto c = static_cast<std::size_t>(channel);
  return (layer.fix_gamma ? 1.0 : gamma[c]) / std::sqrt(moments.variance[c] + layer.epsilon);
}
}  // namespace

void batch_norm(const nn::BatchNorm& layer, const Samples& x, const Moments& moments, const float* gamma,
                const float* beta, Samples& y) {
  for (int c = 0; c < x.shape.c; ++c) {
    const double scale = scale_of(layer, moments, gamma, c);
    each_of_channel(x, c, [&](std::size_t k) {
      y.values[k] = static_cast<float>((x.values[k] - moments.mean[c]) * scale + beta[c]);
    });
  }
}

void batch_norm_backward(const nn::BatchNorm& layer, const Samples& x, const float* gamma, const Samples& dy,
                         Samples& dx, float* dgamma, float* dbeta) {
  const Moments moments = moments_of(x);
  const double count = elements_of_channel(x);
  for (int c = 0; c < x.shape.c; ++c) {
    const double deviation = std::sqrt(moments.variance[c] + layer.epsilon);
    const auto normal = [&](std::size_t k) { return (x.values[k] - moments.mean[c]) / deviation; };
    double sum = 0, sum_with_normal = 0;
    each_of_channel(x, c, [&](std::size_t k) {
      sum += dy.values[k];
      sum_with_normal += dy.values[k] * normal(k);
    });
    const double scale = (layer.fix_gamma ? 1.0 : gamma[c]) / deviation;
    each_of_channel(x, c, [&](std::size_t k) {
      dx.values[k] += static_cast<float>(scale * (dy.values[k] - sum / count - normal(k) * sum_with_normal / count));
    });
    if (!layer.fix_gamma) dgamma[c] += static_cast<float>(sum_with_normal);
    dbeta[c] += static_cast<float>(sum);
  }
}

void fixed_norm_backward(const nn::BatchNorm& layer, const Moments& moments, const float* gamma, const Samples& dy,
                         Samples& dx) {
  for (int c = 0; c < dy.shape.c; ++c) {
    const double scale = scale_of(layer, moments, gamma, c);
    each_of_channel(dy, c, [&](std::size_t k) { dx.values[k] += static_cast<float>(scale * dy.values[k]); });
  }
}

}  // namespace dtrain::backend::reference
