#include <algorithm>
#include <cmath>

#include <dtrain/base/math.hpp>

#include "layers.hpp"

namespace dtrain::backend::cpu {
namespace {

// portable_exp within its range, its ends outside, NaN for NaN.
double exponential(double x) { return std::isnan(x) ? x : portable_exp(std::clamp(x, -700.0, 700.0)); }

// How many classes come before the label: greater logits, and equal ones of smaller index. NaN never counts in the
// label's favour.
int rank_of(const float* logits, int classes, std::int32_t label) {
  int before = 0;
  for (int k = 0; k < label; ++k) before += !(logits[k] < logits[label]);
  for (int k = label + 1; k < classes; ++k) before += !(logits[k] <= logits[label]);
  return before;
}

}  // namespace

SampleMetrics softmax_loss(const float* logits, int classes, std::int32_t label, float label_smoothing, int top_k,
                           float* gradient) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int k = 0; k < classes; ++k) sum += exponential(logits[k] - largest);
  const double normaliser = largest + portable_log(sum);

  const double smoothing = label_smoothing, share = smoothing / classes;
  double loss = (1 - smoothing) * (normaliser - logits[label]);
  if (smoothing != 0) {
    for (int k = 0; k < classes; ++k) loss += share * (normaliser - logits[k]);
  }
  if (gradient) {
    for (int k = 0; k < classes; ++k) {
      const double target = share + (k == label ? 1 - smoothing : 0);
      gradient[k] = static_cast<float>(exponential(logits[k] - normaliser) - target);
    }
  }
  const int rank = rank_of(logits, classes, label);
  return {loss, rank < 1, rank < std::min(top_k, classes)};
}

}  // namespace dtrain::backend::cpu
