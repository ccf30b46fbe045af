// The bodies and programs of the cuda backend, replayed on this CPU, against the reference.
#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

#include "common/trace.hpp"
#include "cuda/replay_device.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;

class CudaReplay : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(All, CudaReplay, ::testing::ValuesIn(layer_problems()),
                         [](const auto& of) { return of.param.name; });

std::string difference(const Problem& problem, const TraceOptions& options, const Tolerance& tolerance = {}) {
  return compare_backends(*make_replay_backend(), *backend::make_reference_backend(), problem, options, tolerance);
}

TEST_P(CudaReplay, AgreesWithTheReference) { EXPECT_EQ(difference(GetParam(), {}), ""); }

// A batch norm over the two rows of a shard cancels nearly all of the gradient: what is left has fewer digits.
TEST_P(CudaReplay, AgreesWithTheReferenceInShardsOfUnequalSize) {
  TraceOptions options;
  options.shards = 4;
  EXPECT_EQ(difference(GetParam(), options, {.gradients = 1e-3}), "");
}

TEST_P(CudaReplay, ComesNearTheReferenceInBfloat16) {
  TraceOptions options;
  options.dtype = DType::bfloat16;
  const Tolerance tolerance{.loss = 0.02, .gradients = 0.3, .statistics = 0.02, .logits = 0.04, .parameters = 0.04};
  EXPECT_EQ(difference(GetParam(), options, tolerance), "");
}

TEST(CudaReplay, MovesWeightsByEveryRuleAsTheReferenceDoes) {
  using nn::OptimizerKind;
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::nag, OptimizerKind::adam, OptimizerKind::adamw}) {
    TraceOptions options;
    options.update.rule = {.kind = kind, .weight_decay = 0.01f};
    options.updates = 3;
    EXPECT_EQ(difference(layer_problems().back(), options), "") << nn::optimizer_name(kind);
  }
}

TEST(CudaReplay, TrainsWholeNetworksAsTheReferenceDoes) {
  for (const nn::NetworkOptions& options :
       {nn::NetworkOptions{.name = "resnet-v1", .num_layers = 8, .image = {3, 32, 32}},
        nn::NetworkOptions{.name = "resnet", .num_layers = 8, .image = {3, 32, 32}},
        nn::NetworkOptions{.name = "lenet", .image = {1, 28, 28}}}) {
    EXPECT_EQ(difference(make_problem(nn::build_network(options), 3), {}), "") << options.name;
  }
}

// Enough rows for sums in many parts that are folded before the last addition.
TEST(CudaReplay, SumsManyRowsInPartsAsTheReferenceDoesInOne) {
  nn::GraphBuilder b("rows", {3, 40, 40});
  const int conv = b.add("conv", nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3, .bias = true}, {b.input()});
  const int bn = b.add("bn", nn::BatchNorm{}, {conv});
  const Problem problem = make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {bn})), 9);
  EXPECT_GT(backend::cuda::cut_rows(9 * 38 * 38, 2).parts_per_fold, 1);
  EXPECT_EQ(difference(problem, {}), "");
}

}  // namespace
}  // namespace dtrain::testing
