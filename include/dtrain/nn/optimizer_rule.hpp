// The optimizer rules as plain values.
#pragma once

namespace dtrain::nn {

enum class OptimizerKind { sgd, nag, adam, adamw };

// With g = gradient / count (+ weight_decay * w where the tensor decays, except adamw):
//   sgd    m = momentum*m - lr*g;               w += m                                       (MXNet's SGD)
//   nag    m = momentum*m + g;                  w -= lr*(g + momentum*m)                     (Sutskever et al. 2013)
//   adam   m = b1*m+(1-b1)g; v = b2*v+(1-b2)g²; w -= lr*sqrt(1-b2^t)/(1-b1^t) * m/(sqrt(v)+epsilon)   (MXNet's Adam)
//   adamw  as adam on the bare gradient, bias-corrected as in Loshchilov and Hutter 2019: w -=
//   lr*(m^/(sqrt(v^)+epsilon) + wd*w)
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0.9f;
  float weight_decay = 1e-4f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
};

}  // namespace dtrain::nn
