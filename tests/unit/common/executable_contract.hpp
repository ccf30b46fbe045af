// What every backend's Executable must do beside the right numbers: shards, state, metrics, refusals. A test program
// includes this once and instantiates it: INSTANTIATE_TEST_SUITE_P(Reference, ExecutableContract,
// ::testing::Values(backend::make_reference_backend)).
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/error.hpp>

#include "problem.hpp"
#include "trace.hpp"

namespace dtrain::testing {

using backend::ContributionLayout;
using BackendMaker = std::unique_ptr<backend::Backend> (*)();

class ExecutableContract : public ::testing::TestWithParam<BackendMaker> {
 protected:
  Trace trace(const Problem& problem, const TraceOptions& options = {}) {
    return trace_steps(*GetParam()(), problem, options);
  }
  std::unique_ptr<backend::Executable> compile(const Problem& problem) {
    return GetParam()()->compile(problem.graph, {.max_samples = problem.n});
  }
};

inline Problem without_batch_norm() {
  nn::GraphBuilder b("plain", {2, 4, 4});
  const int conv = b.add("conv", nn::Convolution{.out = 3, .kernel_h = 3, .kernel_w = 3}, {b.input()});
  const int drop = b.add("drop", nn::Dropout{}, {conv});
  return make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {drop})), 7);
}

inline Problem with_batch_norm(bool fix_gamma = false) {
  nn::GraphBuilder b("normed", {2, 2, 2});
  const int bn = b.add("bn", nn::BatchNorm{.momentum = 0.75f, .fix_gamma = fix_gamma}, {b.input()});
  return make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {bn})), 6);
}

TEST_P(ExecutableContract, GivesTheSameSumForAnyNumberOfShards) {
  const Problem problem = without_batch_norm();
  const std::vector<float> whole = trace(problem).contribution;
  for (const int shards : {2, 4, 16}) {  // 16 of 7 samples: some are empty
    EXPECT_LT(relative_difference(trace(problem, {.shards = shards}).contribution, whole), 1e-6) << shards;
  }
}

TEST_P(ExecutableContract, GivesZerosForAnEmptyShard) {
  const Problem problem = with_batch_norm();
  const std::vector<backend::ShardRange> empty = {{0, 3, 0}};
  CollectingSink sink(problem.graph, empty);
  const auto executable = compile(problem);
  executable->enqueue(problem.batch(), empty, problem.key, sink);
  executable->synchronize();
  EXPECT_EQ(sink.sum(), std::vector<float>(sink.of(0).size(), 0.0f));
}

TEST_P(ExecutableContract, ChangesNothingUntilItApplies) {
  const Problem problem = with_batch_norm();
  const Trace once = trace(problem, {.updates = 0});
  EXPECT_EQ(once.after.parameters, problem.state.parameters);
  EXPECT_EQ(once.after.statistics, problem.state.statistics);
}

TEST_P(ExecutableContract, WeighsBatchStatisticsByTheShardsCount) {
  const Problem problem = with_batch_norm();
  double sum = 0;  // of channel 0: 6 samples of 2 channels of 4 pixels
  for (std::size_t k = 0; k < problem.images.size(); ++k) sum += k % 8 < 4 ? problem.images[k] : 0;
  const auto first = static_cast<std::size_t>(ContributionLayout(problem.graph).gradients);
  EXPECT_NEAR(trace(problem).contribution[first], sum / 4, 1e-5);
  EXPECT_NEAR(trace(problem, {.shards = 4}).contribution[first], sum / 4, 1e-5);
}

TEST_P(ExecutableContract, MovesRunningStatisticsByTheShardsWeightedMean) {
  const Problem problem = with_batch_norm();
  const Trace step = trace(problem, {.shards = 4, .updates = 1});
  const ContributionLayout layout(problem.graph);
  for (std::size_t k = 0; k < problem.state.statistics.size(); ++k) {
    const float batch = step.contribution[static_cast<std::size_t>(layout.gradients) + k] / 6.0f;
    EXPECT_NEAR(step.after.statistics[k], 0.75f * problem.state.statistics[k] + 0.25f * batch, 1e-6f);
  }
}

// One value has the variance 0, whatever its channel's is.
TEST_P(ExecutableContract, LeavesTheRunningVarianceToShardsOfSeveralValues) {
  const auto narrow = [](int n) {
    nn::GraphBuilder b("narrow", {2, 1, 1});
    const int bn = b.add("bn", nn::BatchNorm{.momentum = 0.75f}, {b.input()});
    return make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {bn})), n);
  };
  const Problem alone = narrow(1), several = narrow(5);
  const Trace of_one = trace(alone, {.updates = 1}), of_shards = trace(several, {.shards = 4, .updates = 1});
  for (std::size_t c = 0; c < 2; ++c) {
    const float mean = alone.state.statistics[c], variance = alone.state.statistics[2 + c];
    EXPECT_NEAR(of_one.after.statistics[c], 0.75f * mean + 0.25f * alone.images[c], 1e-6f);
    EXPECT_NEAR(of_one.after.statistics[2 + c], variance, 1e-6f);
    const float half = (several.images[2 * 3 + c] - several.images[2 * 4 + c]) / 2;  // of the shard of two samples
    const float known = several.state.statistics[2 + c];
    EXPECT_NEAR(of_shards.after.statistics[2 + c], 0.75f * known + 0.25f * (3 * known + 2 * half * half) / 5, 1e-6f);
  }
}

TEST_P(ExecutableContract, LeavesAFixedGammaAsItIs) {
  const Problem problem = with_batch_norm(true);
  const Trace steps = trace(problem);
  EXPECT_EQ(steps.after.parameters[0], problem.state.parameters[0]);  // bn_gamma is the first tensor
  EXPECT_NE(steps.after.parameters[2], problem.state.parameters[2]);  // bn_beta the second
}

TEST_P(ExecutableContract, EvaluatesWithRunningStatistics) {
  Problem problem = with_batch_norm();
  const std::vector<float> before = trace(problem, {.updates = 0}).logits;
  problem.state.statistics[0] += 1;
  EXPECT_GT(relative_difference(trace(problem, {.updates = 0}).logits, before), 0.01);
}

TEST_P(ExecutableContract, EvaluatesWithoutDropoutAndWithoutSmoothing) {
  Problem problem = without_batch_norm();
  const Trace plain = trace(problem);
  std::get<nn::SoftmaxLoss>(problem.graph.nodes.back().layer).label_smoothing = 0.3f;
  problem.key.epoch += 1;
  const Trace smoothed = trace(problem);
  EXPECT_EQ(smoothed.evaluated.loss_sum, plain.evaluated.loss_sum);
  EXPECT_NE(smoothed.contribution.back(), 0.0f);
  EXPECT_NE(smoothed.contribution, plain.contribution);
}

// The loss is linear in the target: that of two labels is the sum of those of each by its share.
TEST_P(ExecutableContract, CountsTwoLabelsByTheirShares) {
  Problem problem = with_batch_norm();
  std::get<nn::SoftmaxLoss>(problem.graph.nodes.back().layer).label_smoothing = 0.1f;
  Problem mixed = problem, other = problem;
  other.labels.assign(problem.labels.rbegin(), problem.labels.rend());
  mixed.partners = other.labels;
  mixed.shares.assign(static_cast<std::size_t>(problem.n), 0.7f);
  const std::vector<float> own = trace(problem).contribution, second = trace(other).contribution;
  std::vector<float> expected(own.size());
  for (std::size_t k = 0; k < own.size(); ++k) expected[k] = 0.7f * own[k] + 0.3f * second[k];
  EXPECT_LT(relative_difference(trace(mixed).contribution, expected), 1e-6);
  EXPECT_EQ(trace(mixed).evaluated.correct, trace(problem).evaluated.correct) << "an evaluation mixes nothing";
  mixed.shares.assign(mixed.shares.size(), 1.0f);
  EXPECT_EQ(trace(mixed).contribution, own);
}

// Each shard has its own samples' second labels.
TEST_P(ExecutableContract, FindsTheSecondLabelsOfEachShard) {
  const Problem problem = with_two_labels(without_batch_norm());
  const std::vector<float> whole = trace(problem).contribution;
  EXPECT_LT(relative_difference(trace(problem, {.shards = 4}).contribution, whole), 1e-6);
  EXPECT_NE(whole, trace(without_batch_norm()).contribution);
}

TEST_P(ExecutableContract, DropsOtherElementsInAnotherEpoch) {
  Problem problem = without_batch_norm();
  const std::vector<float> first = trace(problem).contribution;
  EXPECT_EQ(trace(problem).contribution, first);
  problem.key.epoch += 1;
  EXPECT_NE(trace(problem).contribution, first);
}

TEST_P(ExecutableContract, ReadsBackTheStateItWasGiven) {
  Problem problem = with_batch_norm();
  problem.state.optimizer.assign(problem.state.parameters.size(), 0.25f);
  problem.state.average.assign(problem.state.parameters.size() + problem.state.statistics.size(), 0.5f);
  problem.state.updates = 41;
  const auto executable = compile(problem);
  executable->write_state(problem.state);
  const backend::ModelState state = executable->read_state();
  EXPECT_EQ(state.average, problem.state.average);
  EXPECT_EQ(state.parameters, problem.state.parameters);
  EXPECT_EQ(state.statistics, problem.state.statistics);
  EXPECT_EQ(state.optimizer, problem.state.optimizer);
  EXPECT_EQ(state.updates, 41u);
}

// A few floats of the state, from the end of one of its buffers into the next, are those of all of it.
TEST_P(ExecutableContract, ReadsAnyFloatsOfItsState) {
  const Problem problem = with_batch_norm();
  const auto executable = compile(problem);
  executable->write_state(problem.state);
  const std::vector<backend::ShardRange> all = {{0, 0, problem.n}};
  CollectingSink sink(problem.graph, all);
  executable->enqueue(problem.batch(), all, problem.key, sink);
  executable->synchronize();
  executable->apply(sink.sum(), {.rule = {.kind = nn::OptimizerKind::sgd, .average = 0.75f}, .learning_rate = 0.5f});
  const std::int64_t size = executable->state_size();
  std::vector<std::vector<float>> pieces;
  for (std::int64_t first = 0; first < size; ++first) {
    pieces.push_back(executable->state_floats({first, std::min(std::int64_t{5}, size - first)}));
  }
  EXPECT_EQ(executable->state_numbers().updates, 1u);
  const backend::ModelState& state = executable->state();
  std::vector<float> row = state.parameters;
  row.insert(row.end(), state.statistics.begin(), state.statistics.end());
  row.insert(row.end(), state.optimizer.begin(), state.optimizer.end());
  row.insert(row.end(), state.average.begin(), state.average.end());
  ASSERT_EQ(static_cast<std::int64_t>(row.size()), size);
  for (std::size_t first = 0; first < pieces.size(); ++first) {
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(first);
    EXPECT_EQ(pieces[first], std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(pieces[first].size())));
  }
}

// The average begins as the weights before the first update, and follows parameters and statistics.
TEST_P(ExecutableContract, AveragesWeightsAndStatisticsOverTheSteps) {
  const Problem problem = with_batch_norm();
  const nn::Optimizer rule{.kind = nn::OptimizerKind::sgd, .average = 0.75f};
  const auto after = [&](int updates) { return trace(problem, {.update = {rule, 0.5f}, .updates = updates}).after; };
  const auto weights = [](const backend::ModelState& state) {
    std::vector<float> row = state.parameters;
    row.insert(row.end(), state.statistics.begin(), state.statistics.end());
    return row;
  };
  const backend::ModelState one = after(1), two = after(2);
  std::vector<float> expected = weights(problem.state);
  for (const backend::ModelState& state : {one, two}) {
    const std::vector<float> values = weights(state);
    for (std::size_t k = 0; k < expected.size(); ++k) expected[k] = 0.75f * expected[k] + 0.25f * values[k];
    EXPECT_LT(relative_difference(state.average, expected), 1e-6);
  }
  EXPECT_NE(two.average, weights(two));
}

TEST_P(ExecutableContract, EvaluatesByTheAverageInThePlaceOfTheWeights) {
  Problem problem = with_batch_norm();
  Problem averaged = problem;
  for (float& value : averaged.state.parameters) value *= 0.5f;
  averaged.state.statistics[0] += 0.5f;
  problem.state.average = averaged.state.parameters;
  problem.state.average.insert(problem.state.average.end(), averaged.state.statistics.begin(),
                               averaged.state.statistics.end());
  const auto executable = compile(problem), expected = compile(averaged);
  executable->write_state(problem.state);
  expected->write_state(averaged.state);
  const double plain = executable->evaluate(problem.batch()).loss_sum;
  executable->exchange_average();
  EXPECT_EQ(executable->evaluate(problem.batch()).loss_sum, expected->evaluate(problem.batch()).loss_sum);
  executable->exchange_average();
  EXPECT_EQ(executable->evaluate(problem.batch()).loss_sum, plain);
  EXPECT_EQ(executable->state().parameters, problem.state.parameters);
  EXPECT_EQ(executable->state().average, problem.state.average);
}

TEST_P(ExecutableContract, HasNothingToExchangeWithoutAnAverage) {
  const Problem problem = with_batch_norm();
  const auto executable = compile(problem);
  executable->write_state(problem.state);
  executable->exchange_average();
  EXPECT_EQ(executable->state().parameters, problem.state.parameters);
}

TEST_P(ExecutableContract, GivesTheSameBitsAgain) {
  const Problem problem = layer_problems().back();
  const Trace first = trace(problem, {.shards = 2}), second = trace(problem, {.shards = 2});
  EXPECT_EQ(second.contribution, first.contribution);
  EXPECT_EQ(second.after.parameters, first.after.parameters);
}

// A trainer stops on it, so no layer may swallow it.
TEST_P(ExecutableContract, ShowsANaNOfAnyLayersInputInTheLoss) {
  for (Problem& problem : layer_problems()) {
    problem.images.assign(problem.images.size(), NAN);
    const Trace step = trace(problem, {.updates = 1});
    const ContributionLayout layout(problem.graph);
    EXPECT_TRUE(std::isnan(backend::metrics_of(layout, step.contribution).loss_sum)) << problem.name;
  }
}

TEST_P(ExecutableContract, NamesTheSampleOfABadLabel) {
  for (const std::int32_t bad : {-1, 4}) {
    Problem problem = with_batch_norm();
    problem.labels[2] = bad;
    try {
      trace(problem);
      FAIL() << "label " << bad << " was taken";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("sample 15841 has label " + std::to_string(bad)), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace dtrain::testing
