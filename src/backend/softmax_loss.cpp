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

StepMetrics metrics_of_logits(std::span<const float> logits, int classes, const std::int32_t* labels, int top_k) {
  StepMetrics metrics;
  for (const float *of = logits.data(), *end = of + logits.size(); of != end; of += classes, ++labels) {
    const SampleMetrics m = softmax_loss(of, classes, *labels, 0.0f, top_k, nullptr);
    metrics.loss_sum += m.loss;
    metrics.correct += m.correct;
    metrics.top_k_correct += m.top_k_correct;
    metrics.count += 1;
  }
  return metrics;
}

}  // namespace dtrain::backend
