#include "bench/run_estimate.hpp"

#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

namespace dtrain::bench {
namespace {

TEST(RunEstimate, AddsUpStepsAndValidationOfAllEpochs) {
  const RunEstimate estimate =
      estimate_run({.images = 1000, .validation_images = 200, .batch = 128, .epochs = 3}, 0.5, 0.01);
  EXPECT_EQ(estimate.steps, 8u);
  EXPECT_DOUBLE_EQ(estimate.epoch_seconds, 0.5 * 1000 / 128);
  EXPECT_DOUBLE_EQ(estimate.validation_seconds, 2);
  EXPECT_DOUBLE_EQ(estimate.run_seconds, 3 * (0.5 * 1000 / 128 + 2));
}

TEST(RunEstimate, ABatchThatIsLargerThanTheSetIsTheSet) {
  const RunSize size{.images = 100, .validation_images = 0, .batch = 1'000'000, .epochs = 3};
  EXPECT_EQ(images_of_step(size), 100u);
  const RunEstimate estimate = estimate_run(size, 0.5, 0);
  EXPECT_EQ(estimate.steps, 1u);
  EXPECT_DOUBLE_EQ(estimate.epoch_seconds, 0.5);
  EXPECT_DOUBLE_EQ(estimate.run_seconds, 1.5);
  EXPECT_EQ(images_of_step({.images = 100, .batch = 32}), 32u);
}

TEST(RunEstimate, KeepsEveryCheckpointUnlessANumberIsGiven) {
  RunSize size{.images = 10, .batch = 10, .epochs = 5, .checkpoint_bytes = 100};
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 500u);
  size.checkpoints_kept = 2;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 200u);
  size.checkpoints_kept = 9;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 5u);
}

TEST(RunEstimate, CountsTheCheckpointsWithinAnEpoch) {
  RunSize size{.images = 80, .batch = 10, .epochs = 2, .every = 1, .checkpoint_bytes = 100};
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 16u);
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 1600u);
  size.every = 4;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 4u) << "one amid each epoch, and that of its end";
  size.every = 8;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 2u);
  size.every = 1, size.checkpoints_kept = 3;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 3u);
  size.keeps_best = true;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 4u);
}

TEST(RunEstimate, FilesOfMxnetStandBesideTheEndsOfEpochs) {
  RunSize size{.images = 80, .batch = 10, .epochs = 2, .every = 1, .checkpoint_bytes = 100, .params_bytes = 7};
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 16 * 100u + 2 * 7);
  size.checkpoints_kept = 8;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 8 * 100u + 7);
  size.checkpoints_kept = 9;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 9 * 100u + 2 * 7);
  size.checkpoints_kept = 1, size.keeps_best = true;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 2 * 100u + 2 * 7);
}

TEST(RunEstimate, ARunThatIsDoneNeedsNothing) {
  const RunEstimate estimate = estimate_run({.images = 10, .batch = 10, .epochs = 0, .checkpoint_bytes = 100}, 1, 0);
  EXPECT_EQ(estimate.run_seconds, 0);
  EXPECT_EQ(estimate.checkpoint_bytes, 0u);
}

TEST(RunEstimate, ACheckpointHoldsWeightsStatisticsAndTheOptimizersSlots) {
  const nn::Graph graph = nn::build_network({.name = "resnet-v1", .num_layers = 8, .image = {3, 32, 32}});
  const auto parameters = static_cast<std::uint64_t>(graph.parameter_count);
  const auto statistics = static_cast<std::uint64_t>(graph.statistic_count);
  EXPECT_EQ(checkpoint_bytes(graph, {.kind = nn::OptimizerKind::sgd}), 4 * (2 * parameters + statistics));
  EXPECT_EQ(checkpoint_bytes(graph, {.kind = nn::OptimizerKind::adam}), 4 * (3 * parameters + statistics));
  EXPECT_EQ(checkpoint_bytes(graph, {.average = 0.9f}), 4 * (3 * parameters + 2 * statistics));
  EXPECT_EQ(weight_bytes(graph), 4 * (parameters + statistics));
}

TEST(RunEstimate, AStepOfGrowingImagesTakesLongerTowardsTheEnd) {
  constexpr nn::Shape kWhole{3, 32, 32};
  const auto mean = [&](const train::ProgressiveSizes& sizes, double done) {
    return mean_step_seconds(sizes, kWhole, done, 1, 5);
  };
  EXPECT_DOUBLE_EQ(mean({.enabled = true, .delay = 0, .finetune = 1}, 0), 5);
  EXPECT_DOUBLE_EQ(mean({.enabled = true, .delay = 1, .finetune = 0}, 0), 1);
  EXPECT_NEAR(mean({.enabled = true, .delay = 0.5, .finetune = 0.5}, 0), 3, 0.01);
  EXPECT_DOUBLE_EQ(mean({.enabled = true}, 0.9), 5);
  const double whole_run = mean({.enabled = true}, 0);
  EXPECT_GT(whole_run, 0.5 * 1 + 0.3 * 1 + 0.2 * 5);
  EXPECT_LT(whole_run, 0.5 * 1 + 0.3 * 5 + 0.2 * 5);
  EXPECT_GT(mean({.enabled = true}, 0.4), whole_run);
  EXPECT_DOUBLE_EQ(mean({.enabled = true, .initial_scale = 1}, 0), 5);
}

}  // namespace
}  // namespace dtrain::bench
