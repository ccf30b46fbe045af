#include "memory.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/replay_device.hpp"
#include "lowering.hpp"

namespace dtrain::backend::cuda {
namespace {

nn::Graph resnet() { return nn::build_network({.name = "resnet", .num_layers = 20, .image = {3, 32, 32}}); }

struct Planned {
  Model model{resnet(), DType::float32, 5};
  Programs programs{lower_training(model), lower_evaluation(model)};
};

TEST(CudaMemory, TheMostThatFitsFitsAndOneMoreDoesNot) {
  const Planned p;
  const std::uint64_t bytes = bytes_needed(p.model, p.programs, 100, {.fixed = 7000}) + 1000;
  EXPECT_EQ(largest_fitting(p.model, p.programs, 512, {.fixed = 7000}, bytes), 100);
  EXPECT_EQ(largest_fitting(p.model, p.programs, 64, {.fixed = 7000}, bytes), 64);
  EXPECT_EQ(largest_fitting(p.model, p.programs, 512, {.fixed = 7000}, 1000), 0);
}

TEST(CudaMemory, APartOfAGpuIsLeftToLibraries) {
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  EXPECT_EQ(bytes_for_libraries(8 * kGibibyte), kGibibyte / 2);
  EXPECT_EQ(bytes_for_libraries(24 * kGibibyte), kGibibyte * 3 / 2);
  EXPECT_EQ(bytes_for_libraries(141 * kGibibyte), 2 * kGibibyte);
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

// A pooling numbers its threads in 32 bits: 16 packs of each of the 224 x 224 pixels before VGG's first one. An
// evaluation of so many samples would have room on a large GPU.
TEST(CudaMemory, MoreSamplesThanPoolingsCanNumberAreRefusedWithTheMostThatAreNot) {
  const nn::Graph graph = nn::build_network({.name = "vgg", .num_layers = 16, .image = {3, 224, 224}});
  EXPECT_EQ(most_pooled_samples(graph), 5349);
  EXPECT_EQ(most_pooled_samples(nn::build_network({.name = "mlp", .image = {1, 28, 28}})), 0x7fffffff);
  try {
    make_replay_backend(std::uint64_t{1} << 40)->compile(graph, {.max_samples = 5350, .training = false});
    FAIL() << "more than a pooling can number were taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("the most are 5349"), std::string::npos) << error.what();
  }
}

TEST(CudaMemory, TooLargeAShardIsAnsweredWithWhatFits) {
  const Planned p;
  const std::uint64_t room = bytes_needed(p.model, p.programs, 32, needs_of_step(p.model, {})) + 1000;
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
  const std::uint64_t room = bytes_needed(p.model, p.programs, 32, {.fixed = bytes(nn::OptimizerKind::nag)}) + 1000;
  const auto backend = make_replay_backend(room);
  EXPECT_NO_THROW(backend->compile(p.model.graph, {.max_samples = 32, .optimizer = nn::OptimizerKind::nag}));
  EXPECT_THROW(backend->compile(p.model.graph, {.max_samples = 32, .optimizer = nn::OptimizerKind::muon}), UsageError);
}

// A batch has all shards of the rank, and contributions wait on the device for others to be added to.
TEST(CudaMemory, WhatAStepOfSeveralShardsTakesIsPlanned) {
  const Planned p;
  constexpr int kSamples = 1, kShards = 8, kOfStep = kSamples * kShards;
  const std::vector<float> images(static_cast<std::size_t>(kOfStep * p.model.graph.input().size()), 0.5f);
  const std::vector<std::uint8_t> pixels(images.size(), 7);
  const std::vector<nn::PixelPlace> places(kOfStep);
  const std::vector<std::int32_t> labels(kOfStep, 1);
  const std::vector<std::uint32_t> ids(kOfStep);
  for (const bool as_bytes : {false, true}) {
    const CompileOptions options{.max_samples = kSamples,
                                 .optimizer = nn::OptimizerKind::nag,
                                 .shards = kShards,
                                 .batches_as_bytes = as_bytes,
                                 .waiting_sums = waiting_subtrees(kShards)};
    HostBatch batch{.n = kOfStep, .images = images.data(), .labels = labels.data(), .sample_ids = ids.data()};
    if (as_bytes) {
      batch.images = nullptr;
      batch.pixels = {.bytes = pixels.data(), .places = places.data(), .rows = 32, .columns = 32, .scale = {}};
    }
    std::vector<ShardRange> shards;
    for (int shard = 0; shard < kShards; ++shard) shards.push_back({shard, shard * kSamples, kSamples});
    const auto executable = make_replay_backend()->compile(p.model.graph, options);
    // The one that is computed and the next one, from the first step on.
    HostBatch staged = batch;
    staged.staged = executable->stage(batch);
    executable->stage(batch);
    executable->enqueue(staged, shards, {}, OwnSum{});
    executable->set_sum(OwnSum{});
    executable->apply({{.kind = nn::OptimizerKind::nag}, 0.1f});
    const std::uint64_t planned = bytes_needed(p.model, p.programs, kSamples, needs_of_step(p.model, options));
    EXPECT_LE(executable->planned_bytes(), planned) << as_bytes;
    EXPECT_GE(executable->planned_bytes(), planned - planned / 10) << as_bytes;
  }
}

TEST(CudaMemory, ContributionsThatWaitAreCountedWhole) {
  const Planned p;
  const auto fixed = [&](int sums) { return needs_of_step(p.model, {.waiting_sums = sums}).fixed; };
  EXPECT_EQ(fixed(3) - fixed(0),
            3 * sizeof(float) * static_cast<std::uint64_t>(ContributionLayout(p.model.graph).size()));
  EXPECT_EQ(needs_of_step(p.model, {.training = false, .shards = 8, .waiting_sums = 3}).shards, 1);
  EXPECT_EQ(waiting_subtrees(1), 0);
  EXPECT_EQ(waiting_subtrees(2), 1);
  EXPECT_EQ(waiting_subtrees(32), 5);
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
