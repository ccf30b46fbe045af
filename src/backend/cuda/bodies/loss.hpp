// Softmax cross-entropy with what is counted beside it. Thread = sample.
#pragma once

#include "elementwise.hpp"
#include "sums.hpp"

namespace dtrain::backend::cuda {

// counts[sample] = {loss, label first, label among the first top_k, 1}; gradient (may be null) of the loss by the
// logits, times *gradient_scale (null: 1). top_k is at most the number of classes.
template <typename T>
struct SoftmaxLoss {
  const T* logits;
  const std::int32_t* labels;
  T* gradient;
  float* counts;
  std::int64_t n;
  std::int32_t classes, top_k;
  float label_smoothing;
  const float* gradient_scale;
  static constexpr int kCounts = 4;

  DTRAIN_BODY std::int64_t threads() const { return n; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const T* const of = logits + i * classes;
    const std::int32_t label = labels[i];
    const double normaliser = log_sum_exp(of);
    const double smoothing = label_smoothing, share = smoothing / classes;
    double loss = (1 - smoothing) * (normaliser - widen(of[label]));
    if (smoothing != 0) {
      for (std::int32_t k = 0; k < classes; ++k) loss += share * (normaliser - widen(of[k]));
    }
    if (gradient) {
      const float scale = gradient_scale ? *gradient_scale : 1;
      for (std::int32_t k = 0; k < classes; ++k) {
        const double target = share + (k == label ? 1 - smoothing : 0);
        narrow(static_cast<float>(exponential(widen(of[k]) - normaliser) - target) * scale, gradient[i * classes + k]);
      }
    }
    const std::int32_t rank = rank_of(of, label);
    counts[i * kCounts] = static_cast<float>(loss);
    counts[i * kCounts + 1] = rank < 1 ? 1 : 0;
    counts[i * kCounts + 2] = rank < top_k ? 1 : 0;
    counts[i * kCounts + 3] = 1;
  }

 private:
  // log of the sum of exp(logits), shifted by the largest so that nothing overflows.
  DTRAIN_BODY double log_sum_exp(const T* of) const {
    double largest = widen(of[0]), sum = 0;
    for (std::int32_t k = 1; k < classes; ++k) largest = widen(of[k]) > largest ? widen(of[k]) : largest;
    for (std::int32_t k = 0; k < classes; ++k) sum += exponential(widen(of[k]) - largest);
    return sum != sum ? sum : largest + portable_log(sum);
  }
  // How many classes come before the label: greater logits, and equal ones of smaller index. NaN never counts in the
  // label's favour.
  DTRAIN_BODY std::int32_t rank_of(const T* of, std::int32_t label) const {
    const float mine = widen(of[label]);
    std::int32_t before = 0;
    for (std::int32_t k = 0; k < label; ++k) before += !(widen(of[k]) < mine);
    for (std::int32_t k = label + 1; k < classes; ++k) before += !(widen(of[k]) <= mine);
    return before;
  }
};

// Any tensor as float32. Thread = element.
template <typename T>
struct Widen {
  const T* x;
  float* y;
  std::int64_t total;
  DTRAIN_BODY std::int64_t threads() const { return total; }
  DTRAIN_BODY void operator()(std::int64_t i) const { y[i] = widen(x[i]); }
};

}  // namespace dtrain::backend::cuda
