// Loss scaling: gradients come out as if there were none, and a step whose gradients overflow moves nothing else.
#include <gtest/gtest.h>

#include <cmath>

#include "common/replay_device.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::LossScale;
using backend::cuda::make_replay_backend;

std::unique_ptr<backend::Executable> compiled(const Problem& problem, const LossScale& scale) {
  auto executable =
      make_replay_backend()->compile(problem.graph, {.dtype = backend::DType::float16, .max_samples = problem.n});
  backend::ModelState state = problem.state;
  state.loss_scale = scale;
  executable->write_state(std::move(state));
  return executable;
}

std::vector<float> contribution(backend::Executable& executable, const Problem& problem) {
  const std::vector<backend::ShardRange> whole = split_samples(problem.n, 1);
  CollectingSink sink(problem.graph, whole);
  executable.enqueue(problem.batch(), whole, problem.key, sink);
  executable.synchronize();
  return sink.sum();
}

TEST(CudaFloat16, TheScaleDoesNotShowInGradients) {
  const Problem problem = layer_problems().back();
  const std::vector<float> one = contribution(*compiled(problem, {256, 0}), problem);
  EXPECT_LT(relative_difference(contribution(*compiled(problem, {1024, 0}), problem), one), 1e-3);
}

// What float16 cannot hold at all without it.
TEST(CudaFloat16, TheScaleSavesGradientsThatWouldBeZero) {
  nn::GraphBuilder b("small", {1, 2, 2});
  const int a = b.add("a", nn::Dense{.out = 3}, {b.input()});
  Problem problem = make_problem(b.finish(b.add("logits", nn::Dense{.out = 2}, {a})), 2);
  for (float& weight : problem.state.parameters) weight *= 1e-6f;
  const auto first = [&](const LossScale& scale) {
    return std::abs(contribution(*compiled(problem, scale), problem)[0]);
  };
  EXPECT_EQ(first({0x1p-14f, 0}), 0);
  EXPECT_GT(first({0x1p15f, 0}), 0);
}

void expect_nothing_moved(const backend::ModelState& after, const Problem& problem) {
  EXPECT_EQ(after.parameters, problem.state.parameters);
  EXPECT_EQ(after.statistics, problem.state.statistics);
  EXPECT_EQ(after.optimizer, problem.state.optimizer);
  EXPECT_EQ(after.updates, problem.state.updates);
}

TEST(CudaFloat16, AStepThatOverflowedMovesNothingAndHalvesTheScale) {
  const Problem problem = layer_problems().back();
  const auto executable = compiled(problem, {0x1p60f, 7});
  executable->apply(contribution(*executable, problem), {});
  expect_nothing_moved(executable->state(), problem);
  EXPECT_EQ(executable->state().loss_scale, (LossScale{0x1p59f, 0}));
}

TEST(CudaFloat16, SoItIsWhereShardsAreAddedUpOnTheDevice) {
  const Problem problem = layer_problems().back();
  const auto executable = compiled(problem, {0x1p60f, 7});
  executable->enqueue(problem.batch(), split_samples(problem.n, 2), problem.key, backend::OwnSum{});
  executable->set_sum(backend::OwnSum{});
  executable->apply({});
  expect_nothing_moved(executable->state(), problem);
  EXPECT_EQ(executable->state().loss_scale, (LossScale{0x1p59f, 0}));
}

// Another rank's overflow arrives in the sum.
TEST(CudaFloat16, TheSumIsJudgedAndNotThisRanksPart) {
  const Problem problem = layer_problems().back();
  const auto executable = compiled(problem, {});
  std::vector<float> sum = contribution(*executable, problem);
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    for (const std::size_t place : {std::size_t{0}, problem.state.parameters.size() - 1}) {
      std::vector<float> poisoned = sum;
      poisoned[place] = bad;
      executable->write_state(problem.state);
      executable->apply(poisoned, {});
      expect_nothing_moved(executable->state(), problem);
    }
  }
}

TEST(CudaFloat16, AGoodStepMovesWeightsAndIsCounted) {
  const Problem problem = layer_problems().back();
  const auto executable = compiled(problem, {256, 1998});
  executable->apply(contribution(*executable, problem), {{}, 0.05f});
  EXPECT_NE(executable->state().parameters, problem.state.parameters);
  EXPECT_EQ(executable->state().loss_scale, (LossScale{256, 1999}));
  executable->apply(contribution(*executable, problem), {{}, 0.05f});
  EXPECT_EQ(executable->state().loss_scale, (LossScale{512, 0}));
}

TEST(CudaFloat16, OtherTypesKnowNoScale) {
  const Problem problem = layer_problems().back();
  const auto executable = make_replay_backend()->compile(problem.graph, {.max_samples = problem.n});
  executable->write_state(problem.state);
  executable->apply(contribution(*executable, problem), {});
  EXPECT_EQ(executable->state().loss_scale, LossScale{});
}

}  // namespace
}  // namespace dtrain::testing
