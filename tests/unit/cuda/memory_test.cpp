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
  const std::uint64_t bytes = bytes_needed(p.model, p.programs, 100) + 1000;
  EXPECT_EQ(largest_fitting(p.model, p.programs, 512, bytes), 100);
  EXPECT_EQ(largest_fitting(p.model, p.programs, 64, bytes), 64);
  EXPECT_EQ(largest_fitting(p.model, p.programs, 512, 1000), 0);
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
  const std::uint64_t room = bytes_needed(p.model, p.programs, 32) + 1000;
  const auto backend = make_replay_backend(room);
  EXPECT_NO_THROW(backend->compile(p.model.graph, {.max_samples = 32}));
  try {
    backend->compile(p.model.graph, {.max_samples = 4096});
    FAIL() << "more was taken than fits";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("the most that fit are 32"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
