// The loss with what is counted beside it. A sample's classes are cut into parts, so that a thousand
// classes of a few samples keep more than one corner of a GPU busy.
#pragma once

#include "../../loss_terms.hpp"
#include "elementwise.hpp"
#include "input.hpp"
#include "sums.hpp"

namespace dtrain::backend::cuda {

struct Classes {
  static constexpr std::int32_t kInPart = 32;
  std::int32_t number;
  DTRAIN_KERNEL std::int32_t parts() const { return (number + kInPart - 1) / kInPart; }
  DTRAIN_KERNEL std::int32_t first(std::int32_t part) const { return part * kInPart; }
  DTRAIN_KERNEL std::int32_t end(std::int32_t part) const {
    return first(part) + kInPart < number ? first(part) + kInPart : number;
  }
};

// What the classes of a part say of a sample.
struct SoftmaxPart {
  double sum;  // of exp(logit - largest)
  float largest;
  std::int32_t before;  // how many of them come before the label: greater logits, and equal ones of smaller index
  std::int32_t before_partner;
};

// Thread = sample and part.
template <typename T>
struct SoftmaxParts {
  const T* logits;
  Targets targets;
  SoftmaxPart* parts;
  std::int64_t n;
  Classes classes;
  DTRAIN_KERNEL std::int64_t threads() const { return n * classes.parts(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / classes.parts();
    const auto part = static_cast<std::int32_t>(i - sample * classes.parts());
    const T* const of = logits + sample * classes.number;
    const std::int32_t label = targets.labels[sample], partner = targets.partner(sample);
    SoftmaxPart result{0, widen(of[classes.first(part)]), 0, 0};
    for (std::int32_t k = classes.first(part); k < classes.end(part); ++k) {
      result.largest = widen(of[k]) > result.largest ? widen(of[k]) : result.largest;
      result.before += comes_before(of, k, label);
      result.before_partner += comes_before(of, k, partner);
    }
    for (std::int32_t k = classes.first(part); k < classes.end(part); ++k) {
      if (widen(of[k]) != result.largest || result.largest != result.largest) {
        result.sum += exponential(widen(of[k]) - static_cast<double>(result.largest));
      } else {
        result.sum += 1;  // also where both are infinite
      }
    }
    parts[i] = result;
  }

 private:
  // NaN never counts in the label's favour.
  DTRAIN_KERNEL bool comes_before(const T* of, std::int32_t k, std::int32_t label) const {
    const float mine = widen(of[label]), other = widen(of[k]);
    return k < label ? !(other < mine) : k > label && !(other <= mine);
  }
};

// Shifted by the largest, so that nothing overflows.
DTRAIN_KERNEL inline double log_sum_exp(const SoftmaxPart* of, std::int32_t parts) {
  double largest = of[0].largest, sum = 0;
  for (std::int32_t k = 1; k < parts; ++k) largest = of[k].largest > largest ? of[k].largest : largest;
  for (std::int32_t k = 0; k < parts; ++k) sum += of[k].sum * exponential(of[k].largest - largest);
  return sum != sum ? sum : largest + portable_log(sum);
}

// The terms of a part's classes, added up. Thread = sample and part.
template <typename T>
struct LossParts {
  const T* logits;
  Targets targets;
  const SoftmaxPart* parts;
  LossTerm* terms;
  std::int64_t n;
  Classes classes;
  LossRule rule;
  DTRAIN_KERNEL std::int64_t threads() const { return n * classes.parts(); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / classes.parts();
    const auto part = static_cast<std::int32_t>(i - sample * classes.parts());
    const double normaliser = log_sum_exp(parts + sample * classes.parts(), classes.parts());
    LossTerm sum;
    for (std::int32_t k = classes.first(part); k < classes.end(part); ++k) {
      const LossTerm term =
          rule.term(k, targets.own(sample, k), widen(logits[sample * classes.number + k]), normaliser);
      sum.loss += term.loss;
      sum.slope += term.slope;
    }
    terms[i] = sum;
  }
};

// What is known of a sample when its parts are added up.
struct LossOfSample {
  double normaliser;  // log of the sum of exp(logits)
  double slopes;      // see LossRule::gradient
};

// counts[sample] = {loss, label first, label among the first top_k, 1}, of two labels each by its share. top_k is at
// most the number of classes. Thread = sample.
struct SoftmaxLoss {
  const SoftmaxPart* parts;
  const LossTerm* terms;  // of the parts
  Targets targets;
  LossOfSample* samples;
  float* counts;
  std::int64_t n;
  Classes classes;
  std::int32_t top_k;
  static constexpr int kCounts = 4;

  DTRAIN_KERNEL std::int64_t threads() const { return n; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const SoftmaxPart* const of = parts + i * classes.parts();
    LossTerm sum;
    std::int32_t rank = 0, partner_rank = 0;
    for (std::int32_t part = 0; part < classes.parts(); ++part) {
      sum.loss += terms[i * classes.parts() + part].loss;
      sum.slope += terms[i * classes.parts() + part].slope;
      rank += of[part].before;
      partner_rank += of[part].before_partner;
    }
    const double first = targets.share(i), second = 1 - first;
    samples[i] = {log_sum_exp(of, classes.parts()), sum.slope};
    counts[i * kCounts] = static_cast<float>(sum.loss);
    counts[i * kCounts + 1] = static_cast<float>((rank < 1 ? first : 0) + (partner_rank < 1 ? second : 0));
    counts[i * kCounts + 2] = static_cast<float>((rank < top_k ? first : 0) + (partner_rank < top_k ? second : 0));
    counts[i * kCounts + 3] = 1;
  }
};

// Gradient of the loss by the logits, times *scale (null: 1). Thread = sample and class.
template <typename T>
struct SoftmaxGradient {
  const T* logits;
  Targets targets;
  const LossOfSample* samples;
  T* gradient;
  std::int64_t n;
  Classes classes;
  LossRule rule;
  const float* scale;
  DTRAIN_KERNEL std::int64_t threads() const { return n * classes.number; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t sample = i / classes.number, k = i - sample * classes.number;
    const auto [normaliser, slopes] = samples[sample];
    const double logit = widen(logits[i]);
    const LossTerm term = rule.term(k, targets.own(sample, k), logit, normaliser);
    const auto value = static_cast<float>(rule.gradient(term, slopes, logit, normaliser));
    narrow(value * (scale ? *scale : 1), gradient[i]);
  }
};

// The logits x of a view go into the mean y of the views. Thread = element.
template <typename T>
struct AddView {
  const Samples* from;
  const T* x;
  float* y;
  std::int64_t total;
  DTRAIN_KERNEL std::int64_t threads() const { return total; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    y[i] = (from->begins_mean ? 0.0f : y[i]) + from->view.weight * widen(x[i]);
  }
};

}  // namespace dtrain::backend::cuda
