#include <dtrain/backend/softmax_loss.hpp>

#include <algorithm>
#include <cmath>

#include <dtrain/base/math.hpp>

namespace dtrain::backend {
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

Target target_of(const HostBatch& batch, int sample) {
  const std::int32_t label = batch.labels[sample];
  return batch.shares ? Target{label, batch.partners[sample], batch.shares[sample]} : Target{label, label, 1};
}

SampleMetrics softmax_loss(const float* logits, int classes, const Target& target, float label_smoothing, int top_k,
                           float* gradient) {
  const double largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int k = 0; k < classes; ++k) sum += exponential(logits[k] - largest);
  const double normaliser = largest + portable_log(sum);

  const double smoothing = label_smoothing, spread = smoothing / classes;
  const double first = target.share, second = 1 - first;
  double loss = (1 - smoothing) * (normaliser - logits[target.label]);
  if (second != 0) loss = first * loss + second * ((1 - smoothing) * (normaliser - logits[target.partner]));
  if (smoothing != 0) {
    for (int k = 0; k < classes; ++k) loss += spread * (normaliser - logits[k]);
  }
  if (gradient) {
    for (int k = 0; k < classes; ++k) {
      const double own = (k == target.label ? first : 0) + (k == target.partner ? second : 0);
      gradient[k] = static_cast<float>(exponential(logits[k] - normaliser) - (spread + (1 - smoothing) * own));
    }
  }
  SampleMetrics metrics{.loss = loss};
  for (const auto& [label, share] : {std::pair(target.label, first), std::pair(target.partner, second)}) {
    if (share == 0) continue;
    const int rank = rank_of(logits, classes, label);
    metrics.correct += rank < 1 ? share : 0;
    metrics.top_k_correct += rank < std::min(top_k, classes) ? share : 0;
  }
  return metrics;
}

StepMetrics metrics_of_logits(std::span<const float> logits, int classes, const std::int32_t* labels, int top_k) {
  StepMetrics metrics;
  for (const float *of = logits.data(), *end = of + logits.size(); of != end; of += classes, ++labels) {
    const SampleMetrics m = softmax_loss(of, classes, {*labels, *labels}, 0.0f, top_k, nullptr);
    metrics.loss_sum += m.loss;
    metrics.correct += m.correct;
    metrics.top_k_correct += m.top_k_correct;
    metrics.count += 1;
  }
  return metrics;
}

}  // namespace dtrain::backend
