// The kernels and programs of the cuda backend, replayed on this CPU, against the reference.
#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

#include "common/matrix_problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "kernels/sums.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;
using backend::cuda::make_replay_backend;

class CudaReplay : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(All, CudaReplay, ::testing::ValuesIn(layer_problems()),
                         [](const auto& of) { return of.param.name; });

std::string replay_difference(const Problem& problem, const TraceOptions& options, const Tolerance& tolerance = {}) {
  return compare_backends(*make_replay_backend(), *backend::make_reference_backend(), problem, options, tolerance);
}

// By the canonical tree: left child + right child.
std::vector<float> tree_sum(const CollectingSink& sink, int shards) {
  std::vector<std::vector<float>> nodes;
  for (int shard = 0; shard < shards; ++shard) nodes.push_back(sink.of(shard));
  for (; nodes.size() > 1; nodes.resize(nodes.size() / 2)) {
    for (std::size_t node = 0; node < nodes.size() / 2; ++node) {
      std::vector<float> sum = nodes[2 * node];
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += nodes[2 * node + 1][k];
      nodes[node] = std::move(sum);
    }
  }
  return nodes.front();
}

TEST_P(CudaReplay, AgreesWithTheReference) { EXPECT_EQ(replay_difference(GetParam(), {}), ""); }

// A batch norm over the two rows of a shard cancels nearly all of the gradient: what is left has fewer digits.
TEST_P(CudaReplay, AgreesWithTheReferenceInShardsOfUnequalSize) {
  TraceOptions options;
  options.shards = 4;
  EXPECT_EQ(replay_difference(GetParam(), options, {.gradients = 1e-3}), "");
}

TEST_P(CudaReplay, ComesNearTheReferenceInBfloat16) {
  TraceOptions options;
  options.dtype = DType::bfloat16;
  const Tolerance tolerance{.loss = 0.02, .gradients = 0.3, .statistics = 0.02, .logits = 0.04, .parameters = 0.04};
  EXPECT_EQ(replay_difference(GetParam(), options, tolerance), "");
}

TEST_P(CudaReplay, ComesNearTheReferenceInFloat16) {
  TraceOptions options;
  options.dtype = DType::float16;
  const Tolerance tolerance{.loss = 0.003, .gradients = 0.2, .statistics = 0.005, .logits = 0.006, .parameters = 0.02};
  EXPECT_EQ(replay_difference(GetParam(), options, tolerance), "");
}

TEST(CudaReplay, MovesWeightsByEveryRuleAsTheReferenceDoes) {
  using nn::OptimizerKind;
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::nag, OptimizerKind::adam, OptimizerKind::adamw}) {
    TraceOptions options;
    options.update.rule = {.kind = kind, .weight_decay = 0.01f, .bias_lr_factor = 3, .head_lr_factor = 0.5f};
    options.updates = 3;
    EXPECT_EQ(replay_difference(layer_problems().back(), options), "") << nn::optimizer_name(kind);
  }
}

TEST(CudaReplay, MovesMatricesOfAnyShapeAsTheReferenceDoes) {
  TraceOptions options;
  options.updates = 3;
  for (const nn::Optimizer& rule : {nn::Optimizer{.kind = nn::OptimizerKind::muon}, muon_of_odd_numbers()}) {
    options.update.rule = rule;
    EXPECT_EQ(replay_difference(matrix_problem(), options), "") << rule.newton_schulz.steps;
  }
}

TEST(CudaReplay, TrainsWholeNetworksAsTheReferenceDoes) {
  for (const nn::NetworkOptions& options :
       {nn::NetworkOptions{.name = "resnet-v1", .num_layers = 8, .image = {3, 32, 32}},
        nn::NetworkOptions{.name = "resnet", .num_layers = 8, .image = {3, 32, 32}},
        nn::NetworkOptions{.name = "speednet", .image = {3, 32, 32}, .width = 4},
        nn::NetworkOptions{.name = "lenet", .image = {1, 28, 28}}}) {
    EXPECT_EQ(replay_difference(make_problem(nn::build_network(options), 3), {}), "") << options.name;
  }
}

// Enough rows for sums in many parts that are folded before the last addition.
TEST(CudaReplay, SumsManyRowsInPartsAsTheReferenceDoesInOne) {
  nn::GraphBuilder b("rows", {3, 40, 40});
  const int conv = b.add("conv", nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3, .bias = true}, {b.input()});
  const int bn = b.add("bn", nn::BatchNorm{}, {conv});
  const Problem problem = make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {bn})), 9);
  EXPECT_GT(backend::cuda::cut_rows(9 * 38 * 38, 1).folded_parts, 1);
  EXPECT_EQ(replay_difference(problem, {}, {.gradients = 2e-4}),
            "");  // of the bias before a norm: what is left of nothing
}

// What a rank without peers does, against what ranks with peers do: the same bits, also with shards that are empty.
TEST(CudaReplay, AddsShardsUpWhereTheyAreAsTheTreeDoes) {
  const Problem problem = layer_problems().back();
  for (const int shards : {1, 2, 8}) {
    const auto backend = make_replay_backend();
    const auto here = backend->compile(problem.graph, {.max_samples = problem.n});
    const auto there = backend->compile(problem.graph, {.max_samples = problem.n});
    here->write_state(problem.state);
    there->write_state(problem.state);
    const std::vector<backend::ShardRange> ranges = split_samples(problem.n, shards);
    here->enqueue(problem.batch(), ranges, problem.key, backend::OwnSum{});
    const auto metrics = here->set_sum(backend::OwnSum{});
    here->apply({muon_of_odd_numbers(), 0.05f});

    CollectingSink sink(problem.graph, ranges);
    there->enqueue(problem.batch(), ranges, problem.key, sink);
    const std::vector<float> sum = tree_sum(sink, shards);
    there->apply(sum, {muon_of_odd_numbers(), 0.05f});
    EXPECT_EQ(metrics.count, problem.n);
    EXPECT_EQ(static_cast<float>(metrics.loss_sum), sum[sum.size() - 4]);
    EXPECT_EQ(here->state().parameters, there->state().parameters) << shards;
    EXPECT_EQ(here->state().statistics, there->state().statistics) << shards;
  }
}

}  // namespace
}  // namespace dtrain::testing
