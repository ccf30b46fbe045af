// Ba et al. 2016, and the gain of a residual branch.
#include <cmath>

#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// The channels of one pixel.
struct Pixel {
  std::int64_t first, stride;  // of its values
  int channels;
  std::size_t at(int channel) const { return static_cast<std::size_t>(first + channel * stride); }
};

template <typename Visit>
void each_pixel(const Samples& x, Visit visit) {
  for (int i = 0; i < x.n; ++i) {
    for (std::int64_t pixel = 0; pixel < x.pixels(); ++pixel) {
      visit(Pixel{i * x.shape.size() + pixel, x.pixels(), x.shape.c});
    }
  }
}

struct Normal {
  double mean = 0, deviation = 1;
  double of(double value) const { return (value - mean) / deviation; }
};

Normal normal_of(const nn::LayerNorm& layer, const Samples& x, const Pixel& pixel) {
  double sum = 0, squares = 0;
  for (int c = 0; c < pixel.channels; ++c) sum += x.values[pixel.at(c)];
  const double mean = sum / pixel.channels;
  for (int c = 0; c < pixel.channels; ++c) squares += (x.values[pixel.at(c)] - mean) * (x.values[pixel.at(c)] - mean);
  return {mean, std::sqrt(squares / pixel.channels + layer.epsilon)};
}

}  // namespace

void layer_norm(const nn::LayerNorm& layer, const Samples& x, const float* gamma, const float* beta, Samples& y) {
  each_pixel(x, [&](const Pixel& pixel) {
    const Normal normal = normal_of(layer, x, pixel);
    for (int c = 0; c < pixel.channels; ++c) {
      y.values[pixel.at(c)] = static_cast<float>(normal.of(x.values[pixel.at(c)]) * gamma[c] + beta[c]);
    }
  });
}

void layer_norm_backward(const nn::LayerNorm& layer, const Samples& x, const float* gamma, const Samples& dy,
                         Samples& dx, float* dgamma, float* dbeta) {
  const auto channels = static_cast<std::size_t>(x.shape.c);
  std::vector<double> gammas(channels), betas(channels);
  each_pixel(x, [&](const Pixel& pixel) {
    const Normal normal = normal_of(layer, x, pixel);
    double sum = 0, sum_with_normal = 0;
    for (int c = 0; c < pixel.channels; ++c) {
      const double gradient = dy.values[pixel.at(c)], value = normal.of(x.values[pixel.at(c)]);
      sum += gradient * gamma[c];
      sum_with_normal += gradient * gamma[c] * value;
      gammas[static_cast<std::size_t>(c)] += gradient * value;
      betas[static_cast<std::size_t>(c)] += gradient;
    }
    for (int c = 0; c < pixel.channels; ++c) {
      const double value = normal.of(x.values[pixel.at(c)]);
      const double gradient = static_cast<double>(dy.values[pixel.at(c)]) * gamma[c];
      dx.values[pixel.at(c)] += static_cast<float>(
          (gradient - sum / pixel.channels - value * sum_with_normal / pixel.channels) / normal.deviation);
    }
  });
  for (std::size_t c = 0; c < channels; ++c) {
    dgamma[c] += static_cast<float>(gammas[c]);
    dbeta[c] += static_cast<float>(betas[c]);
  }
}

void layer_scale(const Samples& x, const float* gain, Samples& y) {
  each_pixel(x, [&](const Pixel& pixel) {
    for (int c = 0; c < pixel.channels; ++c) y.values[pixel.at(c)] = x.values[pixel.at(c)] * gain[c];
  });
}

void layer_scale_backward(const Samples& x, const float* gain, const Samples& dy, Samples& dx, float* dgain) {
  std::vector<double> gains(static_cast<std::size_t>(x.shape.c));
  each_pixel(x, [&](const Pixel& pixel) {
    for (int c = 0; c < pixel.channels; ++c) {
      dx.values[pixel.at(c)] += gain[c] * dy.values[pixel.at(c)];
      gains[static_cast<std::size_t>(c)] += static_cast<double>(x.values[pixel.at(c)]) * dy.values[pixel.at(c)];
    }
  });
  for (std::size_t c = 0; c < gains.size(); ++c) dgain[c] += static_cast<float>(gains[c]);
}

}  // namespace dtrain::backend::reference
