// The loss of many classes, part by part, against its definition.
#include "kernels/loss.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <dtrain/backend/softmax_loss.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr int kTopK = 5;

struct Batch {
  Batch(int samples, int number) : n(samples), classes{number}, logits(static_cast<std::size_t>(samples * number)) {
    RandomStream random(5, RandomUse::drawing, static_cast<std::uint32_t>(number), 0);
    for (float& logit : logits) logit = static_cast<float>(random.below(1000)) / 100;  // some are equal
    for (int i = 0; i < n; ++i) {
      labels.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint32_t>(number))));
      logits[static_cast<std::size_t>(i * number + labels.back())] += 2.0f * static_cast<float>(i % 5);
    }
  }
  const float* row(int i) const { return logits.data() + i * classes.number; }
  int n;
  Classes classes;
  std::vector<float> logits;
  std::vector<std::int32_t> labels;
};

struct Found {
  std::vector<float> counts, gradient;
};

template <typename Kernel>
void run_loss(const Kernel& kernel) {
  for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
}

Found compute(const Batch& b, const nn::SoftmaxLoss& loss, const Targets& targets) {
  const auto n = static_cast<std::size_t>(b.n);
  std::vector<SoftmaxPart> parts(n * static_cast<std::size_t>(b.classes.parts()));
  std::vector<LossTerm> terms(parts.size());
  std::vector<LossOfSample> samples(n);
  Found found{std::vector<float>(4 * n), std::vector<float>(b.logits.size())};
  const LossRule rule = rule_of(loss, b.classes.number, loss.class_weights.data());
  run_loss(SoftmaxParts<float>{b.logits.data(), targets, parts.data(), b.n, b.classes});
  run_loss(LossParts<float>{b.logits.data(), targets, parts.data(), terms.data(), b.n, b.classes, rule});
  run_loss(
      SoftmaxLoss{parts.data(), terms.data(), targets, samples.data(), found.counts.data(), b.n, b.classes, kTopK});
  run_loss(SoftmaxGradient<float>{b.logits.data(), targets, samples.data(), found.gradient.data(), b.n, b.classes, rule,
                                  nullptr});
  return found;
}

Found compute(const Batch& b, float smoothing, const Targets& targets) {
  return compute(b, nn::SoftmaxLoss{.label_smoothing = smoothing}, targets);
}

Found compute(const Batch& b, float smoothing) { return compute(b, smoothing, {b.labels.data()}); }

double log_sum_exp(const float* of, int number) {
  double sum = 0;
  for (int k = 0; k < number; ++k) sum += std::exp(static_cast<double>(of[k]));
  return std::log(sum);
}

class CudaLoss : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Classes, CudaLoss, ::testing::Values(5, 32, 33, 203));

TEST_P(CudaLoss, IsThatOfAllPartsTogether) {
  const Batch b(60, GetParam());
  for (const float smoothing : {0.0f, 0.25f}) {
    const Found found = compute(b, smoothing);
    for (int i = 0; i < b.n; ++i) {
      const float* const of = b.row(i);
      const double normaliser = log_sum_exp(of, b.classes.number);
      double loss = 0;
      for (int k = 0; k < b.classes.number; ++k) {
        const double target =
            smoothing / b.classes.number + (k == b.labels[static_cast<std::size_t>(i)] ? 1 - smoothing : 0);
        loss += target * (normaliser - of[k]);
        EXPECT_NEAR(found.gradient[static_cast<std::size_t>(i * b.classes.number + k)],
                    std::exp(of[k] - normaliser) - target, 1e-6);
      }
      EXPECT_NEAR(found.counts[static_cast<std::size_t>(4 * i)], loss, 1e-5 * loss + 1e-6);
    }
  }
}

TEST_P(CudaLoss, CountsTwoLabelsByTheirShares) {
  const Batch own(40, GetParam());
  Batch other = own;
  std::rotate(other.labels.begin(), other.labels.begin() + 7, other.labels.end());
  std::vector<float> shares;
  for (int i = 0; i < own.n; ++i) shares.push_back(static_cast<float>(i % 5) / 4);
  const Found first = compute(own, 0.25f), second = compute(other, 0.25f);
  const Found found = compute(own, 0.25f, {own.labels.data(), other.labels.data(), shares.data()});
  const auto expect_mixed = [&](float value, float a, float b, float share) {
    EXPECT_NEAR(value, share * a + (1 - share) * b, 2e-6 * (1 + std::abs(a) + std::abs(b)));
  };
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto number = static_cast<std::size_t>(own.classes.number);
    for (std::size_t k = 0; k < 3; ++k) {
      expect_mixed(found.counts[4 * i + k], first.counts[4 * i + k], second.counts[4 * i + k], shares[i]);
    }
    for (std::size_t k = i * number; k < (i + 1) * number; ++k) {
      expect_mixed(found.gradient[k], first.gradient[k], second.gradient[k], shares[i]);
    }
  }
}

TEST_P(CudaLoss, CountsWhoComesBeforeTheLabelInAllParts) {
  const Batch b(200, GetParam());
  const Found found = compute(b, 0);
  int first = 0, among = 0;
  for (int i = 0; i < b.n; ++i) {
    const int label = b.labels[static_cast<std::size_t>(i)];
    int rank = 0;
    for (int k = 0; k < b.classes.number; ++k) {
      rank += b.row(i)[k] > b.row(i)[label] || (b.row(i)[k] == b.row(i)[label] && k < label);
    }
    EXPECT_EQ(found.counts[static_cast<std::size_t>(4 * i + 1)], rank < 1) << i;
    EXPECT_EQ(found.counts[static_cast<std::size_t>(4 * i + 2)], rank < kTopK) << i;
    first += rank < 1;
    among += rank < kTopK;
  }
  EXPECT_GT(first, 10);
  EXPECT_GE(among, first);
}

// The host's loss, which the reference judges, is that of all parts together.
TEST_P(CudaLoss, IsThatOfTheHostForEveryKind) {
  const Batch b(40, GetParam());
  const Found plain = compute(b, 0.25f);
  nn::SoftmaxLoss loss{.label_smoothing = 0.25f, .focal_gamma = 1.5f};
  for (int k = 0; k < b.classes.number; ++k) loss.class_weights.push_back(0.5f + static_cast<float>(k % 3));
  for (const nn::LossKind kind : {nn::LossKind::softmax, nn::LossKind::sigmoid}) {
    loss.kind = kind;
    const Found found = compute(b, loss, {b.labels.data()});
    EXPECT_NE(found.gradient, plain.gradient);
    std::vector<float> gradient(static_cast<std::size_t>(b.classes.number));
    for (int i = 0; i < b.n; ++i) {
      const std::int32_t label = b.labels[static_cast<std::size_t>(i)];
      const SampleMetrics host = softmax_loss(b.row(i), b.classes.number, {label, label}, loss, kTopK, gradient.data());
      EXPECT_NEAR(found.counts[static_cast<std::size_t>(4 * i)], host.loss, 1e-6 * (1 + host.loss));
      for (int k = 0; k < b.classes.number; ++k) {
        EXPECT_NEAR(found.gradient[static_cast<std::size_t>(i * b.classes.number + k)],
                    gradient[static_cast<std::size_t>(k)], 1e-6);
      }
    }
  }
}

// Wherever it is, it shows in the loss; an impossible class is none.
TEST_P(CudaLoss, KeepsNaNAndTakesInfinity) {
  const int number = GetParam();
  for (const int at : {0, number / 2, number - 1}) {
    Batch b(1, number);
    b.logits[static_cast<std::size_t>(at)] = std::nanf("");
    EXPECT_TRUE(std::isnan(compute(b, 0).counts[0])) << at;
    std::fill(b.logits.begin(), b.logits.end(), -std::numeric_limits<float>::infinity());
    b.logits[static_cast<std::size_t>(at)] = 3;
    b.labels[0] = at;
    EXPECT_EQ(compute(b, 0).counts[0], 0) << at;
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
