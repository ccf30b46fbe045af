// Gradients from the executable's queue to the accelerator's and the sum back, on a GPU whose streams go on when they
// like, to the bits of devices that do all at once.
#include <dtrain/backend/accelerator.hpp>
#include <dtrain/backend/cuda.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/adder_up.hpp"
#include "common/problem.hpp"
#include "common/replay_accelerator.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "orders.hpp"

namespace dtrain::testing {
namespace {

backend::ModelState train(const backend::Backend& backend, Accelerator& gpu, const Problem& problem,
                          const std::vector<std::vector<backend::ShardRange>>& steps) {
  const auto executable = backend.compile(problem.graph, {.max_samples = problem.n});
  executable->write_state(problem.state);
  AdderUp adder(gpu, executable->device_parts(), backend::ContributionLayout(problem.graph).size());
  double loss = 0;
  for (const auto& shards : steps) {
    executable->state_floats({0, 1});  // as ranks compare
    executable->enqueue(problem.batch(), shards, problem.key, adder);
    loss += executable->set_sum(adder.finish()).loss_sum;
    executable->apply({.rule = {.momentum = 0.9f}, .learning_rate = 0.05f});
  }
  backend::ModelState state = executable->read_state();
  state.parameters.push_back(static_cast<float>(loss));
  return state;
}

class GpuHandOver : public InEveryOrder {};
INSTANTIATE_TEST_SUITE_P(All, GpuHandOver, every_order(), OrderName());

TEST_P(GpuHandOver, GivesTheBitsOfAReplay) {
  const std::vector<backend::ShardRange> even = {{0, 0, 2}, {1, 2, 2}, {2, 4, 1}},
                                         some = {{0, 0, 3}, {1, 3, 0}, {2, 3, 2}};
  const auto replay = backend::cuda::make_replay_accelerator();
  const auto on_replay = backend::cuda::make_large_replay_backend();
  const auto gpu = backend::open_accelerator(kGpu);
  const auto on_gpu = backend::make_cuda_backend(kGpu);
  const Problem problem = make_problem(nn::build_network({.name = "resnet", .num_layers = 8, .image = {3, 16, 16}}), 5);
  const std::vector<std::vector<backend::ShardRange>> steps = {even, some, even, even};
  const backend::ModelState expected = train(*on_replay, *replay, problem, steps);
  const backend::ModelState found = train(*on_gpu, *gpu, problem, steps);
  EXPECT_EQ(found.parameters, expected.parameters);
  EXPECT_EQ(found.statistics, expected.statistics);
  EXPECT_EQ(found.optimizer, expected.optimizer);
  EXPECT_GT(cuda_runtime::graph_launches(), 0);
}

}  // namespace
}  // namespace dtrain::testing
