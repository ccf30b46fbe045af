#include <dtrain/train/classification.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

namespace dtrain::train {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// At most 1; below what a double holds it is as good as 0.
double weight(float logit, float largest) {
  const double difference = static_cast<double>(logit) - largest;
  return std::isnan(difference) ? difference : portable_exp(std::max(difference, -700.0));
}

double logistic(float logit) { return 1 / (1 + portable_exp(std::clamp(-static_cast<double>(logit), -700.0, 700.0))); }

std::size_t index(int label) { return static_cast<std::size_t>(label); }

}  // namespace

std::vector<Guess> best_guesses(std::span<const float> logits, nn::LossKind loss, int count) {
  DTRAIN_CHECK(!logits.empty() && count >= 1, "there is a best class");
  const float largest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += weight(logit, largest);
  std::vector<int> labels(logits.size());
  std::iota(labels.begin(), labels.end(), 0);
  const auto shown = static_cast<std::ptrdiff_t>(std::min(index(count), logits.size()));
  const auto place = [&](int label) {
    const float logit = logits[index(label)];
    return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
  };
  std::partial_sort(labels.begin(), labels.begin() + shown, labels.end(), [&](int a, int b) {
    const float x = place(a), y = place(b);
    return x != y ? x > y : a < b;
  });
  std::vector<Guess> guesses;
  for (const int label : std::span(labels).first(static_cast<std::size_t>(shown))) {
    const float logit = logits[index(label)];
    const bool is_alone = loss == nn::LossKind::sigmoid && !std::isnan(sum);
    guesses.push_back({label, is_alone ? logistic(logit) : weight(logit, largest) / sum});
  }
  return guesses;
}

double ClassScore::precision() const { return share(correct, guessed); }
double ClassScore::recall() const { return share(correct, support); }
double ClassScore::f1() const { return share(2 * correct, guessed + support); }

ConfusionMatrix confusion_matrix(std::span<const JudgedSample> samples, int classes) {
  ConfusionMatrix matrix(index(classes) * index(classes));
  for (const JudgedSample& each : samples) ++matrix[index(each.label) * index(classes) + index(each.guess.label)];
  return matrix;
}

std::vector<ClassScore> class_scores(std::span<const JudgedSample> samples, int classes) {
  std::vector<ClassScore> scores(index(classes));
  for (const JudgedSample& each : samples) {
    ++scores[index(each.label)].support;
    ++scores[index(each.guess.label)].guessed;
    if (each.correct()) ++scores[index(each.label)].correct;
  }
  return scores;
}

std::vector<CalibrationBin> calibration_bins(std::span<const JudgedSample> samples, int bins) {
  std::vector<CalibrationBin> all(index(bins));
  for (int i = 0; i < bins; ++i) {
    all[index(i)].low = static_cast<double>(i) / bins;
    all[index(i)].high = static_cast<double>(i + 1) / bins;
  }
  for (const JudgedSample& each : samples) {
    if (!each.guess.is_number()) continue;
    const int place = static_cast<int>(std::ceil(each.guess.probability * bins)) - 1;
    CalibrationBin& bin = all[index(std::clamp(place, 0, bins - 1))];
    ++bin.samples;
    bin.confidence += each.guess.probability;
    bin.accuracy += each.correct() ? 1 : 0;
  }
  for (CalibrationBin& bin : all) {
    if (bin.samples == 0) continue;
    bin.confidence /= static_cast<double>(bin.samples);
    bin.accuracy /= static_cast<double>(bin.samples);
  }
  return all;
}

double calibration_error(std::span<const CalibrationBin> bins) {
  double sum = 0;
  std::uint64_t samples = 0;
  for (const CalibrationBin& bin : bins) {
    sum += static_cast<double>(bin.samples) * std::abs(bin.accuracy - bin.confidence);
    samples += bin.samples;
  }
  return samples == 0 ? 0 : sum / static_cast<double>(samples);
}

std::vector<JudgedSample> worst_mistakes(std::span<const JudgedSample> samples, std::size_t count) {
  std::vector<JudgedSample> wrong;
  std::ranges::copy_if(samples, std::back_inserter(wrong),
                       [](const JudgedSample& each) { return !each.correct() && each.guess.is_number(); });
  std::ranges::stable_sort(wrong, std::greater{}, [](const JudgedSample& each) { return each.guess.probability; });
  if (wrong.size() > count) wrong.resize(count);
  return wrong;
}

}  // namespace dtrain::train
