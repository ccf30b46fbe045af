// What one class adds to the loss of a sample, and how that grows: nn::SoftmaxLoss as constexpr functions, for every
// backend but the reference. NaN stays NaN, so that a broken step shows in its loss.
#pragma once

#include <cstdint>

#include <dtrain/base/math.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::backend {

// portable_exp within its range, its ends outside.
constexpr double bounded_exp(double x) { return x != x ? x : portable_exp(x < -700 ? -700 : x > 700 ? 700 : x); }

// base^exponent, and 0 where the base is not above 0.
constexpr double bounded_power(double base, double exponent) {
  return base > 0 ? bounded_exp(exponent * portable_log(base)) : 0 * base;
}

struct LossTerm {
  double loss = 0;
  double slope = 0;  // softmax: by the logarithm of the class's share; sigmoid: by its logit
};

// Times the weighted target. -(1-p)^gamma log p, by log p.
constexpr LossTerm softmax_term(double gamma, double target, double log_share) {
  if (target == 0) return {};
  if (gamma == 0) return {-target * log_share, -target};
  const double share = bounded_exp(log_share), rest = 1 - share, scale = target * bounded_power(rest, gamma);
  if (scale == 0) return {};
  return {-scale * log_share, scale * (share == 0 ? -1 : gamma * share * log_share / rest - 1)};
}

constexpr LossTerm sigmoid_term(double gamma, double target, double logit) {
  const double small = bounded_exp(logit < 0 ? logit : -logit);  // exp(-|logit|)
  const double share = (logit < 0 ? small : 1) / (1 + small), rest = (logit < 0 ? 1 : small) / (1 + small);
  const double entropy = (logit < 0 ? 0 : logit) - target * logit + portable_log(1 + small);
  const double slope = share - target;
  if (gamma == 0) return {entropy, slope};
  const double miss = share * (1 - target) + rest * target, scale = bounded_power(miss, gamma);
  if (scale == 0) return {};
  return {scale * entropy, scale * (slope + gamma * entropy * share * rest * (1 - 2 * target) / miss)};
}

// Focal loss with gamma 2 and alpha 0.25, and its slope (Lin et al. 2017).
constexpr LossTerm focal_term(double logit, bool target) {
  constexpr double kAlpha = 0.25;
  const double small = bounded_exp(logit < 0 ? logit : -logit);  // exp(-|logit|)
  const double share = (logit < 0 ? small : 1) / (1 + small), rest = (logit < 0 ? 1 : small) / (1 + small);
  const double entropy = (logit > 0 ? logit : 0) - (target ? logit : 0) + portable_log(1 + small);
  const double miss = target ? rest : share, weight = target ? kAlpha : 1 - kAlpha;
  const double slope = target ? -rest : share, growth = (target ? -1 : 1) * share * rest;
  return {weight * miss * miss * entropy, weight * miss * (miss * slope + 2 * growth * entropy)};
}

// Girshick's smooth L1 of a distance: a parabola within 1/9, linear outside.
constexpr LossTerm smooth_distance(double distance) {
  constexpr double kBeta = 1.0 / 9;
  const double size = distance < 0 ? -distance : distance;
  if (size < kBeta) return {0.5 * size * size / kBeta, distance / kBeta};
  return {size - 0.5 * kBeta, distance < 0 ? -1.0 : 1.0};
}

// The share of a class that is a question of its own.
constexpr double sigmoid_of(double logit) { return 1 / (1 + bounded_exp(-logit)); }

// A loss as kernels take it.
struct LossRule {
  double smoothing = 0, gamma = 0, threshold = 1;
  const float* weights = nullptr;  // [classes]; null: all 1
  std::int32_t classes = 0;
  bool sigmoid = false;

  constexpr double target(double own) const {
    const double smoothed = smoothing / classes + (1 - smoothing) * own;
    if (!sigmoid || threshold >= 1) return smoothed;
    return smoothed > threshold ? 1 : 0;
  }
  // `own`: the share that the sample has of class k. `normaliser`: logarithm of the sum of exp(logits), for softmax.
  constexpr LossTerm term(std::int64_t k, double own, double logit, double normaliser) const {
    const double weight = weights ? static_cast<double>(weights[k]) : 1;
    if (!sigmoid) return softmax_term(gamma, weight * target(own), logit - normaliser);
    const LossTerm term = sigmoid_term(gamma, target(own), logit);
    return {weight / classes * term.loss, weight / classes * term.slope};
  }
  // By the logit of class k. `slopes`: the sum over all classes.
  constexpr double gradient(const LossTerm& term, double slopes, double logit, double normaliser) const {
    return sigmoid ? term.slope : term.slope - slopes * bounded_exp(logit - normaliser);
  }
};

// `weights`: where the loss's class weights lie.
inline LossRule rule_of(const nn::SoftmaxLoss& loss, int classes, const float* weights) {
  return {.smoothing = static_cast<double>(loss.label_smoothing),
          .gamma = static_cast<double>(loss.focal_gamma),
          .threshold = static_cast<double>(loss.target_threshold),
          .weights = loss.class_weights.empty() ? nullptr : weights,
          .classes = classes,
          .sigmoid = loss.kind == nn::LossKind::sigmoid};
}

}  // namespace dtrain::backend
