// Every layer kind, alone and in the blocks of the networks, against the reference backend.
#include <gtest/gtest.h>

#include <limits>

#include <dtrain/nn/networks.hpp>

#include "common/matrix_problem.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;

class CpuLayers : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(All, CpuLayers, ::testing::ValuesIn(layer_problems()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Host, CpuLayers, ::testing::ValuesIn(host_problems()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Detection, CpuLayers, ::testing::ValuesIn(detection_problems()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Regions, CpuLayers, ::testing::ValuesIn(region_problems()),
                         [](const auto& of) { return of.param.name; });

std::string difference(const Problem& problem, const TraceOptions& options, const Tolerance& tolerance = {}) {
  return compare_backends(*backend::make_cpu_backend(), *backend::make_reference_backend(), problem, options,
                          tolerance);
}

TEST_P(CpuLayers, AgreesWithTheReferenceOnOneThread) { EXPECT_EQ(difference(GetParam(), {}), ""); }

TEST_P(CpuLayers, AgreesWithTheReferenceWhenTwoThreadsShareAShard) {
  TraceOptions options;
  options.threads_per_lane = 2;
  EXPECT_EQ(difference(GetParam(), options), "");
}

TEST_P(CpuLayers, AgreesWithTheReferenceInShardsOfUnequalSize) {
  TraceOptions options;
  options.shards = 4;
  options.lanes = 2;
  // A norm over two samples divides by a deviation that may be small, which makes a sum in another order show.
  EXPECT_EQ(difference(GetParam(), options, {.gradients = 2e-4}), "");
}

TEST_P(CpuLayers, GivesTheSameBitsOnOneAndTwoLanes) {
  const auto cpu = backend::make_cpu_backend();
  TraceOptions one, two;
  one.shards = two.shards = 4;
  two.lanes = 2;
  const Trace a = trace_steps(*cpu, GetParam(), one), b = trace_steps(*cpu, GetParam(), two);
  EXPECT_EQ(a.contribution, b.contribution);
  EXPECT_EQ(a.after.parameters, b.after.parameters);
  EXPECT_EQ(a.logits, b.logits);
}

TEST(CpuUpdates, MoveEveryGroupByEveryRuleAsTheReferenceDoes) {
  using nn::OptimizerKind;
  for (const auto kind :
       {OptimizerKind::sgd, OptimizerKind::nag, OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::rmsprop,
        OptimizerKind::adagrad, OptimizerKind::lamb, OptimizerKind::lars, OptimizerKind::adamax, OptimizerKind::nadam,
        OptimizerKind::adadelta, OptimizerKind::signum, OptimizerKind::ftml}) {
    TraceOptions options;
    options.update.rule = {.kind = kind, .weight_decay = 0.01f, .bias_lr_factor = 3, .head_lr_factor = 0.5f};
    options.updates = 3;
    EXPECT_EQ(difference(layer_problems().back(), options), "") << nn::optimizer_name(kind);
  }
}

TEST(CpuUpdates, AdaptLarsWithoutDecayAsTheReferenceDoes) {
  TraceOptions options;
  options.update.rule = {.kind = nn::OptimizerKind::lars, .weight_decay = 0};
  options.updates = 3;
  EXPECT_EQ(difference(layer_problems().back(), options), "");
}

TEST(CpuUpdates, LetRatesDecayByLayerAsTheReferenceDoes) {
  using nn::OptimizerKind;
  const auto cpu = backend::make_cpu_backend();
  const Problem problem = matrix_problem();
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::nag, OptimizerKind::adamw}) {
    TraceOptions options;
    options.update.rule = {.kind = kind, .weight_decay = 0.1f, .epsilon = 0.01f, .layer_decay = 0.5f};
    options.updates = 3;
    EXPECT_EQ(difference(problem, options), "") << nn::optimizer_name(kind);
    TraceOptions even = options;
    even.update.rule.layer_decay = 1;
    EXPECT_NE(trace_steps(*cpu, problem, options).after.parameters, trace_steps(*cpu, problem, even).after.parameters);
  }
}

TEST(CpuUpdates, CutGradientsAndAverageWeightsAsTheReferenceDoes) {
  using nn::OptimizerKind;
  for (const auto kind :
       {OptimizerKind::nag, OptimizerKind::adamw, OptimizerKind::muon, OptimizerKind::lamb, OptimizerKind::lars}) {
    TraceOptions options;
    options.update.rule = {.kind = kind, .epsilon = 1e-3f, .clip_norm = 0.1f, .clip_gradient = 0.01f, .average = 0.8f};
    options.updates = 3;
    EXPECT_EQ(difference(layer_problems().back(), options), "") << nn::optimizer_name(kind);
  }
}

TEST(CpuUpdates, CutByTheNormToTheSameBitsOnAnyNumberOfThreads) {
  const auto after = [](nn::OptimizerKind kind, int lanes) {
    TraceOptions options;
    options.lanes = lanes;
    options.shards = 4;
    options.update.rule = {.kind = kind, .clip_norm = 0.1f, .average = 0.8f};
    const Problem problem =
        make_problem(nn::build_network({.name = "resnet", .num_layers = 8, .image = {3, 16, 16}}), 6);
    return trace_steps(*backend::make_cpu_backend(), problem, options).after;
  };
  for (const auto kind : {nn::OptimizerKind::nag, nn::OptimizerKind::lamb, nn::OptimizerKind::lars}) {
    const backend::ModelState one = after(kind, 1), three = after(kind, 3);
    EXPECT_EQ(three.parameters, one.parameters) << nn::optimizer_name(kind);
    EXPECT_EQ(three.average, one.average) << nn::optimizer_name(kind);
  }
}

TEST(CpuLoss, TakesTwoLabelsAsTheReferenceDoes) {
  for (const float smoothing : {0.0f, 0.2f}) {
    Problem problem = with_two_labels(layer_problems().back());
    std::get<nn::SoftmaxLoss>(problem.graph.nodes.back().layer).label_smoothing = smoothing;
    EXPECT_EQ(difference(problem, {.shards = 2, .threads_per_lane = 2}), "");
  }
}

// bfloat16 has 8 bits of precision: what is rounded after each layer is off by up to a few per cent.
TEST_P(CpuLayers, ComesNearTheReferenceInBfloat16) {
  if (backend::make_cpu_backend()->why_not(DType::bfloat16)) GTEST_SKIP() << "this CPU lacks bfloat16";
  if (std::holds_alternative<nn::RegionLoss>(GetParam().graph.nodes.back().layer)) {
    GTEST_SKIP() << "scores that are rounded choose other regions";
  }
  TraceOptions options;
  options.dtype = DType::bfloat16;
  Tolerance tolerance{.loss = 0.02, .gradients = 0.3, .statistics = 0.02, .logits = 0.04, .parameters = 0.04};
  if (nn::detection_of(GetParam().graph)) {
    // Scores that lie close together change places, and the slope of a distance of boxes its sign.
    tolerance.logits = std::numeric_limits<double>::infinity();
    tolerance.parameters = 0.1;
  }
  EXPECT_EQ(difference(GetParam(), options, tolerance), "");
}

}  // namespace
}  // namespace dtrain::testing
