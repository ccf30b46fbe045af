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

TEST(RunEstimate, KeepsEveryCheckpointUnlessANumberIsGiven) {
  RunSize size{.images = 10, .batch = 10, .epochs = 5, .checkpoint_bytes = 100};
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 500u);
  size.checkpoints_kept = 2;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoint_bytes, 200u);
  size.checkpoints_kept = 9;
  EXPECT_EQ(estimate_run(size, 1, 0).checkpoints, 5u);
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
}

}  // namespace
}  // namespace dtrain::bench
