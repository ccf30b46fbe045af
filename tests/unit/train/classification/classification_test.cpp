#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <dtrain/train/classification.hpp>

namespace dtrain::train {
namespace {

using nn::LossKind;
constexpr LossKind kSoftmax = LossKind::softmax;

TEST(BestGuesses, AreSortedAndAddUpToOne) {
  const std::vector<float> logits{0, 2, 1, 2};
  const std::vector<Guess> guesses = best_guesses(logits, kSoftmax, 9);
  ASSERT_EQ(guesses.size(), 4u);
  EXPECT_EQ(guesses[0].label, 1);  // the smaller label of two equal ones
  EXPECT_EQ(guesses[1].label, 3);
  EXPECT_EQ(guesses[3].label, 0);
  double sum = 0;
  for (const Guess& each : guesses) sum += each.probability;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(best_guesses(std::vector<float>{1000, -1000}, kSoftmax, 1).front().probability, 1);
}

TEST(BestGuesses, OfNoNumbersAreLast) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits(300, std::nanf(""));
  logits[7] = 2;
  const std::vector<Guess> guesses = best_guesses(logits, kSoftmax, 300);
  EXPECT_EQ(guesses[0].label, 7);
  EXPECT_EQ(guesses[1].label, 0);
  EXPECT_FALSE(guesses[0].is_number());
  const std::vector<JudgedSample> samples{{0, 1, guesses[0]}};
  EXPECT_EQ(calibration_error(calibration_bins(samples, 5)), 0);
  EXPECT_TRUE(worst_mistakes(samples, 9).empty());
  EXPECT_FALSE(best_guesses(std::vector<float>{1, kInfinity}, kSoftmax, 1).front().is_number());
  EXPECT_EQ(best_guesses(std::vector<float>{1, -kInfinity}, kSoftmax, 1).front().probability, 1);
}

TEST(BestGuesses, OfBinaryCrossEntropyAreTheSigmoidOfEachLogit) {
  const std::vector<float> logits{-1, 3, 0, -1000};
  const std::vector<Guess> guesses = best_guesses(logits, LossKind::sigmoid, 4);
  const int labels[] = {1, 2, 0, 3};
  for (std::size_t k = 0; k < guesses.size(); ++k) {
    EXPECT_EQ(guesses[k].label, labels[k]);
    const double logit = logits[static_cast<std::size_t>(labels[k])];
    EXPECT_NEAR(guesses[k].probability, 1 / (1 + std::exp(-logit)), 1e-12);
  }
  const std::vector<float> broken{1, std::nanf("")};
  EXPECT_FALSE(best_guesses(broken, LossKind::sigmoid, 1).front().is_number());
}

// Three of class 0, two of class 1, none of class 2.
const std::vector<JudgedSample> kSamples{
    {0, 0, {0, 0.9}}, {1, 0, {0, 0.6}}, {2, 0, {1, 0.7}}, {3, 1, {1, 1.0}}, {4, 1, {2, 0.8}}};

TEST(ClassScores, CountPrecisionRecallAndF1) {
  const std::vector<ClassScore> scores = class_scores(kSamples, 3);
  EXPECT_EQ(scores[0].support, 3u);
  EXPECT_DOUBLE_EQ(scores[0].precision(), 1);
  EXPECT_DOUBLE_EQ(scores[0].recall(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores[0].f1(), 0.8);
  EXPECT_DOUBLE_EQ(scores[1].precision(), 0.5);
  EXPECT_EQ(scores[2].recall(), 0);  // no picture: no division
  EXPECT_EQ(confusion_matrix(kSamples, 3), (ConfusionMatrix{2, 1, 0, 0, 1, 1, 0, 0, 0}));
}

TEST(Calibration, ComparesConfidenceWithAccuracyInBins) {
  const auto bins = calibration_bins(kSamples, 5);
  EXPECT_EQ(bins[2].samples, 1u);  // 0.6 ends the third bin
  EXPECT_EQ(bins[3].samples, 2u);
  EXPECT_DOUBLE_EQ(bins[3].confidence, 0.75);
  EXPECT_EQ(bins[3].accuracy, 0);
  EXPECT_EQ(bins[4].samples, 2u);
  EXPECT_NEAR(calibration_error(bins), (0.4 + 2 * 0.75 + 2 * 0.05) / 5, 1e-12);
  EXPECT_EQ(calibration_error(calibration_bins({}, 15)), 0);
}

TEST(WorstMistakes, AreTheMostConfidentWrongOnes) {
  const auto worst = worst_mistakes(kSamples, 1);
  ASSERT_EQ(worst.size(), 1u);
  EXPECT_EQ(worst.front().sample, 4u);
  EXPECT_EQ(worst_mistakes(kSamples, 9).size(), 2u);
}

}  // namespace
}  // namespace dtrain::train
