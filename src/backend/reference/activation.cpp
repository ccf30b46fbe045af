#include "exponential.hpp"
#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + exponential(-x)); }
double tanh_of(double x) { return 2 * sigmoid(2 * x) - 1; }

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
