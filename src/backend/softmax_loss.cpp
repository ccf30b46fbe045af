#include <dtrain/backend/softmax_loss.hpp>

#include <algorithm>

#include "loss_terms.hpp"

namespace dtrain::backend {
namespace {

// Logarithm of the sum of exp(logits), shifted by the largest, so that nothing overflows.
double log_sum_exp(const float* logits, int classes) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int k = 0; k < classes; ++k) sum += bounded_exp(logits[k] - largest);
  return largest + portable_log(sum);
}

// How many classes come before the label: greater logits, and equal ones of smaller index. NaN never counts in the
// label's favour.
int rank_of(const float* logits, int classes, std::int32_t label) {
  int before = 0;
  for (int k = 0; k < label; ++k) before += !(logits[k] < logits[label]);
  for (int k = label + 1; k < classes; ++k) before += !(logits[k] <= logits[label]);
  return before;
}

}  // namespace

Target target_of(const HostBatch& batch, int sample) {
  const std::int32_t label = batch.labels[sample];
  return batch.shares ? Target{label, batch.partners[sample], batch.shares[sample]} : Target{label, label, 1};
}

SampleMetrics softmax_loss(const float* logits, int classes, const Target& target, const nn::SoftmaxLoss& loss,
                           int top_k, float* gradient) {
  const LossRule rule = rule_of(loss, classes, loss.class_weights.data());
  const double first = target.share, second = 1 - first;
  const double normaliser = rule.sigmoid ? 0 : log_sum_exp(logits, classes);
  const auto term_of = [&](int k) {
    const double own = (k == target.label ? first : 0) + (k == target.partner ? second : 0);
    return rule.term(k, own, logits[k], normaliser);
  };
  LossTerm sum;
  for (int k = 0; k < classes; ++k) {
    const LossTerm term = term_of(k);
    sum.loss += term.loss, sum.slope += term.slope;
  }
  for (int k = 0; gradient && k < classes; ++k) {
    gradient[k] = static_cast<float>(rule.gradient(term_of(k), sum.slope, logits[k], normaliser));
  }
  SampleMetrics metrics{.loss = sum.loss};
  for (const auto& [label, share] : {std::pair(target.label, first), std::pair(target.partner, second)}) {
    if (share == 0) continue;
    const int rank = rank_of(logits, classes, label);
    metrics.correct += rank < 1 ? share : 0;
    metrics.top_k_correct += rank < std::min(top_k, classes) ? share : 0;
  }
  return metrics;
}

StepMetrics metrics_of_logits(std::span<const float> logits, int classes, const std::int32_t* labels, int top_k) {
  const nn::SoftmaxLoss plain;
  StepMetrics metrics;
  for (const float *of = logits.data(), *end = of + logits.size(); of != end; of += classes, ++labels) {
    const SampleMetrics m = softmax_loss(of, classes, {*labels, *labels}, plain, top_k, nullptr);
    metrics.loss_sum += m.loss;
    metrics.correct += m.correct;
    metrics.top_k_correct += m.top_k_correct;
    metrics.count += 1;
  }
  return metrics;
}

}  // namespace dtrain::backend
