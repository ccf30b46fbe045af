#include "memory.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/replay_device.hpp"

namespace dtrain::backend::cuda {
namespace {

nn::Graph resnet() { return nn::build_network({.name = "resnet", .num_layers = 20, .image = {3, 32, 32}}); }

struct Planned {
  Model model{resnet(), DType::float32, 5};
  Programs programs{lower_training(model), lower_evaluation(model)};
};

TEST(CudaMemory, TheMostThatFitsFitsAndOneMoreDoesNot) {
  const Planned p;
  const std::uint64_t bytes = bytes_needed(p.model, p.programs, 100, 7000) + 1000;
  EXPECT_EQ(largest_fitting(p.model, p.programs, 512, 7000, bytes), 100);
  EXPECT_EQ(largest_fitting(p.model, p.programs, 64, 7000, bytes), 64);
  EXPECT_EQ(largest_fitting(p.model, p.programs, 512, 7000, 1000), 0);
}

TEST(CudaMemory, PartsBeginAtMultiplesOf256Bytes) {
  const Planned p;
  const MemoryLayout layout(p.model, p.programs, 7);
  for (int part = 0; part < static_cast<int>(Part::count); ++part) {
    EXPECT_EQ(layout.offset(static_cast<Part>(part)) % 256, 0u) << part;
  }
}

TEST(CudaMemory, TensorsThatAreDeadLeaveTheirPlaceToOthers) {
  const Planned p;
  std::size_t all = 0;
  for (const nn::Node& node : p.model.graph.nodes) all += static_cast<std::size_t>(2 * node.output.size()) * 4 * 64;
  EXPECT_LT(p.programs.training.arena_bytes(64), all);
  EXPECT_LT(4 * p.programs.evaluation.arena_bytes(64), p.programs.training.arena_bytes(64));
}

TEST(CudaMemory, TooLargeAShardIsAnsweredWithWhatFits) {
  const Planned p;
  const std::uint64_t room = bytes_needed(p.model, p.programs, 32, update_bytes(p.model, {})) + 1000;
  const auto backend = make_replay_backend(room);
  EXPECT_NO_THROW(backend->compile(p.model.graph, {.max_samples = 32}));
  try {
    backend->compile(p.model.graph, {.max_samples = 4096});
    FAIL() << "more was taken than fits";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("the most that fit are 32"), std::string::npos) << error.what();
  }
}

TEST(CudaMemory, WhatARuleNeedsIsPlannedWhereTheRuleIsKnown) {
  const Planned p;
  const std::uint64_t slot = 4 * p.model.graph.parameter_count;
  const auto bytes = [&](std::optional<nn::OptimizerKind> rule) { return update_bytes(p.model, {.optimizer = rule}); };
  EXPECT_EQ(bytes(nn::OptimizerKind::nag), slot);
  EXPECT_EQ(bytes(nn::OptimizerKind::adamw), 2 * slot);
  EXPECT_EQ(bytes(std::nullopt), 2 * slot);
  EXPECT_GT(bytes(nn::OptimizerKind::muon), 3 * slot);
  EXPECT_EQ(update_bytes(p.model, {.training = false}), 0u);
  const std::uint64_t room = bytes_needed(p.model, p.programs, 32, bytes(nn::OptimizerKind::nag)) + 1000;
  const auto backend = make_replay_backend(room);
  EXPECT_NO_THROW(backend->compile(p.model.graph, {.max_samples = 32, .optimizer = nn::OptimizerKind::nag}));
  EXPECT_THROW(backend->compile(p.model.graph, {.max_samples = 32, .optimizer = nn::OptimizerKind::muon}), UsageError);
}

// So that what does not fit is told before the first step.
TEST(CudaMemory, WhatMuonNeedsIsReservedBeforeTheFirstStep) {
  const Planned p;
  const auto executable =
      make_replay_backend()->compile(p.model.graph, {.max_samples = 1, .optimizer = nn::OptimizerKind::muon});
  const std::vector<float> zeros(static_cast<std::size_t>(p.model.graph.parameter_count), 0.0f);
  executable->write_state({.parameters = zeros,
                           .statistics = std::vector<float>(static_cast<std::size_t>(p.model.graph.statistic_count)),
                           .optimizer = zeros});
  const std::uint64_t before = executable->planned_bytes();
  std::vector<float> sum(static_cast<std::size_t>(ContributionLayout(p.model.graph).size()), 1.0f);
  executable->apply(sum, {{.kind = nn::OptimizerKind::muon}, 0.1f});
  EXPECT_EQ(executable->planned_bytes(), before);
}

}  // namespace
}  // namespace dtrain::backend::cuda
