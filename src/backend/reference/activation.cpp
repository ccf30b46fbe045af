#include <cmath>

#include "exponential.hpp"
#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + exponential(-x)); }
double tanh_of(double x) { return 2 * sigmoid(2 * x) - 1; }

double hard_sigmoid(double x) { return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6; }

double normal_density(double x) { return 0.3989422804014327 * exponential(-x * x / 2); }

// The share of the normal distribution below x, by a series of terms of one sign: 1/2 + density * (x + x^3/3 +
// x^5/(3*5) + ...). Beyond 9 it is 0 or 1 to the last bit that counts.
double normal_share(double x) {
  if (std::isnan(x)) return x;
  if (std::abs(x) > 9) return x < 0 ? 0 : 1;
  double sum = x, term = x;
  for (int k = 3; std::abs(term) > 1e-17 * std::abs(sum); k += 2) sum += term *= x * x / k;
  return 0.5 + normal_density(x) * sum;
}

// NaN stays NaN, so that a broken step shows in its loss.
double value(nn::ActivationKind kind, double x) {
  switch (kind) {
    case nn::ActivationKind::relu:
      return x < 0 ? 0 : x;
    case nn::ActivationKind::tanh:
      return tanh_of(x);
    case nn::ActivationKind::sigmoid:
      return sigmoid(x);
    case nn::ActivationKind::relu6:
      return x < 0 ? 0 : x > 6 ? 6 : x;
    case nn::ActivationKind::gelu:
      return x * normal_share(x);
    case nn::ActivationKind::silu:
      return x * sigmoid(x);
    case nn::ActivationKind::hard_swish:
      return x * hard_sigmoid(x);
    case nn::ActivationKind::hard_sigmoid:
      return hard_sigmoid(x);
  }
  return x;
}

double slope(nn::ActivationKind kind, double x) {
  switch (kind) {
    case nn::ActivationKind::relu:
      return x > 0 ? 1 : 0;
    case nn::ActivationKind::tanh:
      return 1 - tanh_of(x) * tanh_of(x);
    case nn::ActivationKind::sigmoid:
      return sigmoid(x) * (1 - sigmoid(x));
    case nn::ActivationKind::relu6:
      return x > 0 && x < 6 ? 1 : 0;
    case nn::ActivationKind::gelu:
      return normal_share(x) + x * normal_density(x);
    case nn::ActivationKind::silu:
      return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case nn::ActivationKind::hard_swish:
      return x <= -3 ? 0 : x >= 3 ? 1 : x / 3 + 0.5;
    case nn::ActivationKind::hard_sigmoid:
      return x > -3 && x < 3 ? 1.0 / 6 : 0;
  }
  return 1;
}

}  // namespace

void activate(const nn::Activation& layer, const Samples& x, Samples& y) {
  for (std::size_t k = 0; k < x.values.size(); ++k) y.values[k] = static_cast<float>(value(layer.kind, x.values[k]));
}

void activate_backward(const nn::Activation& layer, const Samples& x, const Samples& dy, Samples& dx) {
  for (std::size_t k = 0; k < x.values.size(); ++k) {
    dx.values[k] += static_cast<float>(slope(layer.kind, x.values[k]) * dy.values[k]);
  }
}

}  // namespace dtrain::backend::reference
