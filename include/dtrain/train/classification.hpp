// What logits say about a picture, and how good that is over many pictures. Pure functions, any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::train {

struct Guess {
  int label = 0;
  double probability = 0;  // no number where a logit is none, or infinite
  bool is_number() const { return !std::isnan(probability); }
};
// The `count` most probable classes, the best first; of equal ones the smaller label first. logits: [classes], of a
// network that learned by this kind of loss: probabilities are their softmax, which adds up to 1, or the sigmoid of
// each. What is no number is less than all numbers.
std::vector<Guess> best_guesses(std::span<const float> logits, nn::LossKind loss, int count);

// A picture of known class, and the best guess.
struct JudgedSample {
  std::uint32_t sample = 0;  // position in its record files
  int label = 0;
  Guess guess;
  bool correct() const { return label == guess.label; }
};

struct ClassScore {
  std::uint64_t support = 0;  // pictures of the class
  std::uint64_t guessed = 0;  // pictures that are taken for it
  std::uint64_t correct = 0;
  double precision() const;  // 0 where nothing is guessed
  double recall() const;     // 0 where there is no picture
  double f1() const;
};

// [classes * classes], a row for each class with the counts of what its pictures are taken for.
using ConfusionMatrix = std::vector<std::uint64_t>;
ConfusionMatrix confusion_matrix(std::span<const JudgedSample> samples, int classes);
std::vector<ClassScore> class_scores(std::span<const JudgedSample> samples, int classes);

// Guesses whose probability lies in (low, high]; those of no number are left out.
struct CalibrationBin {
  double low = 0, high = 0;
  std::uint64_t samples = 0;
  double confidence = 0, accuracy = 0;  // means; 0 without samples
};
std::vector<CalibrationBin> calibration_bins(std::span<const JudgedSample> samples, int bins);
// Expected calibration error: the mean of |accuracy - confidence| over the bins, weighted by their samples.
double calibration_error(std::span<const CalibrationBin> bins);

// The wrong guesses, the most probable first; at most `count`. Those of no number are left out.
std::vector<JudgedSample> worst_mistakes(std::span<const JudgedSample> samples, std::size_t count);

}  // namespace dtrain::train
