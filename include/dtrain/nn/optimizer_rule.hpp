// The optimizer rules as plain values.
#pragma once

namespace dtrain::nn {

enum class OptimizerKind { sgd, nag, adam, adamw, muon };

// orthogonal(G), G a matrix with rows <= columns (else its transpose): X = G / (|G| + kLeastNorm), |.| the root of the
// sum of squares; then `steps` times X = a*X + b*XX'X + c*XX'XX'X. Draws all singular values towards 1; with these
// numbers those above 0.02 end between 0.68 and 1.21, which serves as well (Jordan et al. 2024).
struct NewtonSchulz {
  static constexpr float kLeastNorm = 1e-7f, kMostCoefficient = 10;
  static constexpr int kMostSteps = 20;
  int steps = 3;
  float a = 3.4445f, b = -4.7750f, c = 2.0315f;
};

// With g = f * gradient / count (+ weight_decay * w where the tensor decays, except adamw and muon's matrices):
//   sgd    m = momentum*m - lr*g;               w += m                                       (MXNet's SGD)
//   nag    m = momentum*m + g;                  w -= lr*(g + momentum*m)                     (Sutskever et al. 2013)
//   adam   m = b1*m+(1-b1)g; v = b2*v+(1-b2)g²; w -= f*lr*sqrt(1-b2^t)/(1-b1^t) * m/(sqrt(v)+epsilon)  (MXNet's Adam)
//   adamw  as adam on the bare gradient, bias-corrected as in Loshchilov and Hutter 2019: w -=
//   lr*(f*m^/(sqrt(v^)+epsilon) + wd*w)
//   muon   the weights of nn::weight_matrices, each as a matrix: m = momentum*m + g; where only batch norms see the
//          weight's scale, w *= sqrt(rows)/|w|; w -= lr*(orthogonal(g + momentum*m) + wd*w). All else by nag with
//          rest_momentum.
// f is the factor of the tensor's nn::ParameterGroup. It is on the gradient's rate and not on the decay's; the adams,
// whose m/sqrt(v) knows no scale of gradients, have it where it stands above and not in g.
struct Optimizer {
  static constexpr float kMostFactor = 1e6f;
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;
  float weight_decay = 1e-4f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float bias_lr_factor = 1, head_lr_factor = 1;
  NewtonSchulz newton_schulz{};
  float rest_momentum = 0.9f;
};

}  // namespace dtrain::nn
