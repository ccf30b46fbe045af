// The optimizer rules as plain values.
#pragma once

namespace dtrain::nn {

enum class OptimizerKind {
  sgd,
  nag,
  adam,
  adamw,
  muon,
  rmsprop,
  adagrad,
  lamb,
  lars,
  adamax,
  nadam,
  adadelta,
  signum,
  ftml
};

// A tensor's step depends on the length of its weights, so it cannot be taken weight by weight.
constexpr bool is_layer_wise(OptimizerKind kind) { return kind == OptimizerKind::lamb || kind == OptimizerKind::lars; }

// orthogonal(G), G a matrix with rows <= columns (else its transpose): X = G / (|G| + kLeastNorm), |.| the root of the
// sum of squares; then `steps` times X = a*X + b*XX'X + c*XX'XX'X. Draws all singular values towards 1; with these
// numbers those above 0.02 end between 0.68 and 1.21, which serves as well (Jordan et al. 2024).
struct NewtonSchulz {
  static constexpr float kLeastNorm = 1e-7f, kMostCoefficient = 10;
  static constexpr int kMostSteps = 20;
  int steps = 3;
  float a = 3.4445f, b = -4.7750f, c = 2.0315f;
};

// gradient / count is cut first, where that is asked for: all gradients that are learned by are multiplied with
// clip_norm / (n + kNormEpsilon) where the norm n of all of them together is greater, as PyTorch's clip_grad_norm_
// does; then each is cut to [-clip_gradient, clip_gradient], as MXNet's sgd does. With g = f * gradient / count (+
// weight_decay * w where the tensor decays, except adamw, lamb and muon's matrices):
//   sgd    m = momentum*m - lr*g;               w += m                                       (MXNet's SGD)
//   nag    m = momentum*m + g;                  w -= lr*(g + momentum*m)                     (Sutskever et al. 2013)
//   adam   m = b1*m+(1-b1)g; v = b2*v+(1-b2)g²; w -= f*lr*sqrt(1-b2^t)/(1-b1^t) * m/(sqrt(v)+epsilon)  (MXNet's Adam)
//   adamw  as adam on the bare gradient, bias-corrected as in Loshchilov and Hutter 2019: w -=
//   lr*(f*m^/(sqrt(v^)+epsilon) + wd*w)
//   muon   the weights of nn::weight_matrices, each as a matrix: m = momentum*m + g; where only batch norms see the
//          weight's scale, w *= sqrt(rows)/|w|; w -= lr*(orthogonal(g + momentum*m) + wd*w). All else by nag with
//          rest_momentum.
//   rmsprop  v = b2*v+(1-b2)g²; w -= f*lr * g/sqrt(v+epsilon)                                (MXNet's RMSProp)
//   adagrad  v = v+g², g without decay; w -= lr*(f*g/sqrt(v+epsilon) + wd*w)                 (MXNet's AdaGrad)
//   lamb   m and v as adamw; u = m^/(sqrt(v^)+epsilon) + wd*w; w -= f*lr*|w|/|u| * u, each tensor with its own norms,
//          1 instead of |w|/|u| where one of them is 0; biases, gammas and betas have neither wd nor |w|/|u|,
//          as timm's Lamb, where weights without wd have no |w|/|u| either      (You et al. 2020)
//   lars   r = kTrust*|w|/(|g| + wd*|w| + epsilon), g without f and decay; m = momentum*m - lr*r*g; w += m. r is 1 for
//          biases, gammas and betas, and where |w| or |g| is 0                              (You et al. 2017, MXNet's
//          LARS)
//   adamax m as adam; u = max(b2*u, |g| + epsilon); w -= f*lr/(1-b1^t) * m/u                (Kingma and Ba 2015)
//   nadam  m and v as adam; w -= f*lr * (a*g + b*m)/(sqrt(v^)+epsilon), a and b of nn::nadam_shares  (Dozat 2016)
//   adadelta  v as rmsprop; d = sqrt(u+epsilon)/sqrt(v+epsilon) * g; u = b2*u+(1-b2)d²; w -= f*lr*d  (Zeiler 2012)
//   signum m = momentum*m + (1-momentum)*g; w -= f*lr*sign(m)                              (Bernstein et al. 2018)
//   ftml   v as rmsprop; w -= f*lr*(1-b1)/(1-b1^t) * g/(sqrt(v^)+epsilon): what d and z of Zheng and Kwok 2017, and of
//          MXNet, come to                                                                  (MXNet's FTML)
// f is the factor of the tensor's nn::ParameterGroup. It is on the gradient's rate and not on the decay's; the adams,
// whose m/sqrt(v) knows no scale of gradients, have it where it stands above and not in g, and so have all rules from
// rmsprop on but lars.
// Behind the step: average = d*average + (1-d)*value, for parameters and running statistics, where `average` is not 0.
// d is average, or while average_warms_up at step t the smaller of it and 1 - t^(-2/3)   (timm's ModelEmaV3).
struct Optimizer {
  static constexpr float kMostFactor = 1e6f, kNormEpsilon = 1e-6f, kTrust = 1e-3f;
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;
  float weight_decay = 1e-4f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float bias_lr_factor = 1, head_lr_factor = 1;
  // sgd, nag, adamw: rate and decay of a tensor are multiplied with its nn::layer_shares(); 1: all learn alike.
  float layer_decay = 1;
  NewtonSchulz newton_schulz{};
  float rest_momentum = 0.9f;
  float clip_norm = 0, clip_gradient = 0;  // 0: nothing is cut
  float average = 0;                       // decay of the average of weights; 0: there is none
  bool average_warms_up = false;
};

}  // namespace dtrain::nn
