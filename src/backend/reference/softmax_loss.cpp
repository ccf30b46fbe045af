#include <algorithm>

#include "exponential.hpp"
#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// log of the sum of exp(logits), shifted by the largest so that nothing overflows.
double log_sum_exp(const float* logits, int classes) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int k = 0; k < classes; ++k) sum += exponential(logits[k] - largest);
  return largest + portable_log(sum);
}

// The share of class k in sample i, before smoothing.
double share_of(const HostBatch& of, int i, int k) {
  if (!of.shares) return k == of.labels[i] ? 1 : 0;
  const double share = of.shares[i];
  return (k == of.labels[i] ? share : 0) + (k == of.partners[i] ? 1 - share : 0);
}

// The share of class k in the smoothed target of sample i.
double target(float label_smoothing, int classes, const HostBatch& of, int i, int k) {
  const double smoothing = label_smoothing;
  return smoothing / classes + (1 - smoothing) * share_of(of, i, k);
}

double loss(float label_smoothing, const float* logits, int classes, const HostBatch& of, int i) {
  const double normaliser = log_sum_exp(logits, classes);
  double sum = 0;
  for (int k = 0; k < classes; ++k) {
    const double share = target(label_smoothing, classes, of, i, k);
    if (share != 0) sum += share * (normaliser - logits[k]);
  }
  return sum;
}

// How many classes come before the label: those with a greater logit, and equal ones with a smaller index. Written so
// that NaN never counts in the label's favour.
int rank_of(const float* logits, int classes, std::int32_t label) {
  int before = 0;
  for (int k = 0; k < label; ++k) before += !(logits[k] < logits[label]);
  for (int k = label + 1; k < classes; ++k) before += !(logits[k] <= logits[label]);
  return before;
}

}  // namespace

void softmax(const Samples& logits, Samples& y) {
  const int classes = logits.shape.c;
  for (int i = 0; i < logits.n; ++i) {
    const double normaliser = log_sum_exp(logits.sample(i), classes);
    for (int k = 0; k < classes; ++k) {
      y.sample(i)[k] = static_cast<float>(exponential(logits.sample(i)[k] - normaliser));
    }
  }
}

StepMetrics softmax_metrics(float label_smoothing, int top_k, const Samples& logits, const HostBatch& of) {
  const int classes = logits.shape.c;
  StepMetrics metrics;
  metrics.count = logits.n;
  for (int i = 0; i < logits.n; ++i) {
    metrics.loss_sum += loss(label_smoothing, logits.sample(i), classes, of, i);
    for (int k = 0; k < classes; ++k) {
      const double share = share_of(of, i, k);
      if (share == 0) continue;
      const int rank = rank_of(logits.sample(i), classes, k);
      metrics.correct += rank < 1 ? share : 0;
      metrics.top_k_correct += rank < std::min(top_k, classes) ? share : 0;
    }
  }
  return metrics;
}

void softmax_loss_backward(float label_smoothing, const Samples& probabilities, const HostBatch& of, Samples& dlogits) {
  const int classes = probabilities.shape.c;
  for (int i = 0; i < probabilities.n; ++i) {
    for (int k = 0; k < classes; ++k) {
      const double share = target(label_smoothing, classes, of, i, k);
      dlogits.sample(i)[k] += static_cast<float>(probabilities.sample(i)[k] - share);
    }
  }
}

}  // namespace dtrain::backend::reference
