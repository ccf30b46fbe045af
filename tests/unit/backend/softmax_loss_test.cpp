// The loss of one sample on the host: its gradient is its slope, and what it does at its ends.
#include <dtrain/backend/softmax_loss.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace dtrain::backend {
namespace {

constexpr int kClasses = 4;
using Logits = std::array<float, kClasses>;
constexpr Target kMixed{.label = 2, .partner = 0, .share = 0.75f};

double loss_at(const Logits& logits, const nn::SoftmaxLoss& loss, const Target& target) {
  return softmax_loss(logits.data(), kClasses, target, loss, 5, nullptr).loss;
}

Logits gradient_at(const Logits& logits, const nn::SoftmaxLoss& loss, const Target& target) {
  Logits gradient;
  softmax_loss(logits.data(), kClasses, target, loss, 5, gradient.data());
  return gradient;
}

std::vector<nn::SoftmaxLoss> all_kinds() {
  std::vector<nn::SoftmaxLoss> losses;
  for (const nn::LossKind kind : {nn::LossKind::softmax, nn::LossKind::sigmoid}) {
    for (const float gamma : {0.0f, 0.5f, 2.0f}) {
      for (const float smoothing : {0.0f, 0.2f}) {
        losses.push_back({.label_smoothing = smoothing, .kind = kind, .focal_gamma = gamma});
        losses.push_back(losses.back());
        losses.back().class_weights = {0.5f, 3, 2, 0};
      }
    }
  }
  losses.push_back({.kind = nn::LossKind::sigmoid, .target_threshold = 0.5f});
  return losses;
}

TEST(SampleLoss, ItsGradientIsItsSlope) {
  const Logits at = {0.5f, -1.25f, 1.5f, 0.25f};
  for (const nn::SoftmaxLoss& loss : all_kinds()) {
    const Logits gradient = gradient_at(at, loss, kMixed);
    for (std::size_t k = 0; k < kClasses; ++k) {
      constexpr float kStep = 1.0f / 1024;
      Logits more = at, less = at;
      more[k] += kStep, less[k] -= kStep;
      const double slope = (loss_at(more, loss, kMixed) - loss_at(less, loss, kMixed)) / (2 * double{kStep});
      EXPECT_NEAR(gradient[k], slope, 2e-6)
          << k << " gamma " << loss.focal_gamma << " sigmoid " << (loss.kind == nn::LossKind::sigmoid);
    }
  }
}

// log 4 of four equal logits, and log 2 of each question that stands at 0.
TEST(SampleLoss, KnowsSimpleValues) {
  const Logits zero{};
  const Target label{.label = 1, .partner = 1};
  EXPECT_NEAR(loss_at(zero, {}, label), std::log(4.0), 1e-12);
  EXPECT_NEAR(loss_at(zero, {.focal_gamma = 2}, label), 0.5625 * std::log(4.0), 1e-12);
  EXPECT_NEAR(loss_at(zero, {.class_weights = {1, 3, 1, 1}}, label), 3 * std::log(4.0), 1e-12);
  EXPECT_NEAR(loss_at(zero, {.kind = nn::LossKind::sigmoid}, label), std::log(2.0), 1e-12);
  EXPECT_NEAR(loss_at(zero, {.kind = nn::LossKind::sigmoid, .focal_gamma = 1}, label), 0.5 * std::log(2.0), 1e-12);
}

TEST(SampleLoss, AThresholdMakesWholeTargets) {
  const Logits logits = {0.5f, -1.25f, 1.5f, 0.25f};
  const auto at = [&](float threshold) {
    return loss_at(logits, {.kind = nn::LossKind::sigmoid, .target_threshold = threshold}, kMixed);
  };
  const nn::SoftmaxLoss whole{.kind = nn::LossKind::sigmoid};
  EXPECT_NEAR(at(0.5f), loss_at(logits, whole, {.label = 2, .partner = 2}), 1e-12);
  const double both = loss_at(logits, whole, {.label = 2, .partner = 2}) - 0.5 / kClasses;  // class 0 counts as 1 too
  EXPECT_NEAR(at(0.2f), both, 1e-7);
}

TEST(SampleLoss, StaysFiniteWhereALogitIsLargeAndShowsWhatIsNone) {
  const Target label{.label = 1, .partner = 1};
  for (const nn::SoftmaxLoss& loss : all_kinds()) {
    for (const float logit : {-3e4f, 3e4f}) {
      const Logits logits = {0, logit, 1, 2};
      EXPECT_TRUE(std::isfinite(loss_at(logits, loss, label)));
      for (const float slope : gradient_at(logits, loss, label)) EXPECT_TRUE(std::isfinite(slope));
    }
    const Logits broken = {0, std::numeric_limits<float>::quiet_NaN(), 1, 2};
    EXPECT_TRUE(std::isnan(loss_at(broken, loss, label)));
  }
}

}  // namespace
}  // namespace dtrain::backend
