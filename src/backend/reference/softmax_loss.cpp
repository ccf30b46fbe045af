#include <algorithm>
#include <cmath>
#include <vector>

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

// The target of class k of sample i.
double target(const nn::SoftmaxLoss& loss, int classes, const HostBatch& of, int i, int k) {
  const double smoothing = loss.label_smoothing;
  const double smoothed = smoothing / classes + (1 - smoothing) * share_of(of, i, k);
  if (loss.kind == nn::LossKind::softmax || loss.target_threshold >= 1) return smoothed;
  return smoothed > double{loss.target_threshold} ? 1 : 0;
}

double weight(const nn::SoftmaxLoss& loss, int k) {
  return loss.class_weights.empty() ? 1 : double{loss.class_weights[static_cast<std::size_t>(k)]};
}

// 0 to the power of 0 is 1.
double focal_power(double base, double exponent) {
  if (exponent == 0) return 1;
  return base > 0 ? exponential(exponent * portable_log(base)) : 0 * base;
}

// Logarithms of p and of 1 - p, p being the share that the logit has.
struct Shares {
  double log_p, log_q;
  double p() const { return exponential(log_p); }
  double q() const { return exponential(log_q); }
};

// Of a question of its own.
Shares sigmoid_shares(double logit) {
  const double rest = portable_log(1 + exponential(-std::abs(logit)));
  return {std::min(logit, 0.0) - rest, std::min(-logit, 0.0) - rest};
}

double sigmoid_loss(const nn::SoftmaxLoss& loss, double t, double logit) {
  const Shares s = sigmoid_shares(logit);
  const double miss = s.p() * (1 - t) + s.q() * t;
  return focal_power(miss, loss.focal_gamma) * (-t * s.log_p - (1 - t) * s.log_q);
}

// By the logit, with dp = p q.
double sigmoid_slope(const nn::SoftmaxLoss& loss, double t, double logit) {
  const double gamma = loss.focal_gamma;
  const Shares s = sigmoid_shares(logit);
  const double entropy = -t * s.log_p - (1 - t) * s.log_q, entropy_slope = s.p() - t;
  const double miss = s.p() * (1 - t) + s.q() * t, miss_slope = s.p() * s.q() * (1 - 2 * t);
  const double of_power = gamma == 0 || miss == 0 ? 0 : gamma * focal_power(miss, gamma) / miss * miss_slope;
  return focal_power(miss, gamma) * entropy_slope + of_power * entropy;
}

double softmax_loss(const nn::SoftmaxLoss& loss, double t, double log_p) {
  return t == 0 ? 0 : t * focal_power(1 - exponential(log_p), loss.focal_gamma) * -log_p;
}

// By log p.
double softmax_slope(const nn::SoftmaxLoss& loss, double t, double log_p) {
  if (t == 0) return 0;
  const double gamma = loss.focal_gamma, p = exponential(log_p), q = 1 - p;
  const double of_power = gamma == 0 || p == 0 || q == 0 ? 0 : gamma * focal_power(q, gamma) / q * p;
  return t * (of_power * log_p - focal_power(q, gamma));
}

double loss_of_sample(const nn::SoftmaxLoss& loss, const float* logits, int classes, const HostBatch& of, int i) {
  const bool sigmoid = loss.kind == nn::LossKind::sigmoid;
  const double normaliser = sigmoid ? 0 : log_sum_exp(logits, classes);
  double sum = 0;
  for (int k = 0; k < classes; ++k) {
    const double t = target(loss, classes, of, i, k), logit = logits[k];
    sum += weight(loss, k) *
           (sigmoid ? sigmoid_loss(loss, t, logit) / classes : softmax_loss(loss, t, logit - normaliser));
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

StepMetrics softmax_metrics(const nn::SoftmaxLoss& loss, int top_k, const Samples& logits, const HostBatch& of) {
  const int classes = logits.shape.c;
  StepMetrics metrics;
  metrics.count = logits.n;
  for (int i = 0; i < logits.n; ++i) {
    metrics.loss_sum += loss_of_sample(loss, logits.sample(i), classes, of, i);
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

// A logit moves log p of its own class by 1 - p, and of all others by -p, p being its share.
void softmax_loss_backward(const nn::SoftmaxLoss& loss, const Samples& logits, const HostBatch& of, Samples& dlogits) {
  const int classes = logits.shape.c;
  const bool sigmoid = loss.kind == nn::LossKind::sigmoid;
  std::vector<double> slopes(static_cast<std::size_t>(classes));
  for (int i = 0; i < logits.n; ++i) {
    const float* const x = logits.sample(i);
    const double normaliser = sigmoid ? 0 : log_sum_exp(x, classes);
    double sum = 0;
    for (int k = 0; k < classes; ++k) {
      const double t = target(loss, classes, of, i, k);
      double& slope = slopes[static_cast<std::size_t>(k)];
      slope = weight(loss, k) *
              (sigmoid ? sigmoid_slope(loss, t, x[k]) / classes : softmax_slope(loss, t, x[k] - normaliser));
      if (!sigmoid) sum += slope;
    }
    for (int k = 0; k < classes; ++k) {
      const double others = sigmoid ? 0 : sum * exponential(x[k] - normaliser);
      dlogits.sample(i)[k] += static_cast<float>(slopes[static_cast<std::size_t>(k)] - others);
    }
  }
}

}  // namespace dtrain::backend::reference
