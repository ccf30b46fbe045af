// What is fused, and that it computes the same: a CPU does at once, by its definition, what a GPU may do at once.
#include "convolution_fusion.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/nn/networks.hpp>

#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "training_calls.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;
using namespace backend::cuda;
using Calls = std::vector<Call>;

template <typename T>
bool sums_up_on(const Call& call) {
  return call.work.holds<NormStatistics<T>>() || call.work.holds<NormForward<T>>() ||
         call.work.holds<NormForward<T, false, true>>();
}
bool sums_up(const Call& call) { return sums_up_on<float>(call) || sums_up_on<Bf16>(call); }
bool leaves_moments(const Call& call) {
  const auto* const work = call.work.get_if<Convolution>();
  return work && work->moments;
}
bool always(const Convolution&) { return true; }

Calls calls_of(const char* network, int layers, DType dtype = DType::float32) {
  return training_calls(nn::build_network({.name = network, .num_layers = layers, .image = {3, 32, 32}}), dtype, 4);
}

TEST(ConvolutionFusion, LetsEveryConvolutionBeforeANormLeaveItsMoments) {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Calls apart = calls_of("resnet-v1", 20, dtype);
    const Calls together = fused(apart, always);
    EXPECT_EQ(std::ranges::count_if(together, sums_up), 0);
    EXPECT_EQ(std::ranges::count_if(together, leaves_moments), std::ranges::count_if(apart, sums_up));
  }
}

// Those of the second version, many of which see a sum of two branches.
TEST(ConvolutionFusion, LeavesNormsThatSeeNoConvolutionAsTheyAre) {
  const Calls apart = calls_of("resnet", 20);
  const Calls together = fused(apart, always);
  const auto kept = std::ranges::count_if(together, sums_up);
  EXPECT_GT(kept, 0);
  EXPECT_GT(std::ranges::count_if(together, leaves_moments), 0);
  EXPECT_EQ(kept + std::ranges::count_if(together, leaves_moments), std::ranges::count_if(apart, sums_up));
}

TEST(ConvolutionFusion, LeavesAllAsItIsWhereTheDeviceJoinsNothing) {
  const Calls apart = calls_of("resnet-v1", 20);
  const Calls same = fused(apart, [](const Convolution&) { return false; });
  ASSERT_EQ(same.size(), apart.size());
  for (std::size_t at = 0; at < same.size(); ++at) {
    EXPECT_EQ(same[at].name, apart[at].name);
    EXPECT_EQ(same[at].work.index(), apart[at].work.index());
    EXPECT_FALSE(leaves_moments(same[at]));
  }
}

bool reads_a_norm(const Call& call) {
  const auto* const work = call.work.get_if<Convolution>();
  return work && work->normed.x;
}
bool computes_what_it_reads(const Call& call) {
  return reads_a_norm(call) && call.work.get_if<Convolution>()->normed.fused;
}
bool applies(const Call& call) { return call.work.holds<NormApply<float>>() || call.work.holds<NormForward<float>>(); }

// Each such convolution comes twice: forward, and for the gradient of its weights.
TEST(ConvolutionFusion, WritesNothingThatANormMakesForOneConvolution) {
  const Calls apart = calls_of("resnet-v1", 50);
  const Calls together = fused(apart, always);
  const auto readers = std::ranges::count_if(apart, reads_a_norm);
  EXPECT_GT(readers, 0);
  EXPECT_EQ(std::ranges::count_if(together, computes_what_it_reads), readers);
  EXPECT_EQ(std::ranges::count_if(together, applies) + readers / 2, std::ranges::count_if(apart, applies));
}

TEST(ConvolutionFusion, WritesWhatOneOfTheTwoDirectionsMustRead) {
  const Calls apart = calls_of("resnet-v1", 50);
  for (const Direction refused : {Direction::forward, Direction::backward_weights}) {
    const Calls together = fused(apart, [&](const Convolution& work) { return work.direction != refused; });
    EXPECT_EQ(std::ranges::count_if(together, computes_what_it_reads), 0);
    EXPECT_EQ(std::ranges::count_if(together, applies), std::ranges::count_if(apart, applies));
  }
}

// A bias is added to what the convolution left, so its moments are not those that the norm wants.
TEST(ConvolutionFusion, JoinsNothingOverABias) {
  nn::GraphBuilder b("bias", {3, 8, 8});
  const int conv = b.add("conv", nn::Convolution{.out = 4, .kernel_h = 3, .kernel_w = 3, .bias = true}, {b.input()});
  const int bn = b.add("bn", nn::BatchNorm{}, {conv});
  const Calls together =
      fused(training_calls(b.finish(b.add("logits", nn::Dense{.out = 4}, {bn})), DType::float32, 2), always);
  EXPECT_EQ(std::ranges::count_if(together, leaves_moments), 0);
}

std::string difference(const Problem& problem, const TraceOptions& options, const Tolerance& tolerance = {}) {
  const auto fusing = make_replay_backend(std::uint64_t{8} << 30, {.fuses = true});
  return compare_backends(*fusing, *backend::make_reference_backend(), problem, options, tolerance);
}

Problem resnet(const char* name) {
  return make_problem(nn::build_network({.name = name, .num_layers = 8, .image = {3, 32, 32}}), 3);
}

TEST(ConvolutionFusion, ComputesWhatTheReferenceDoes) {
  for (const char* name : {"resnet-v1", "resnet"}) EXPECT_EQ(difference(resnet(name), {}), "") << name;
  TraceOptions options;
  options.shards = 3;
  EXPECT_EQ(difference(resnet("resnet-v1"), options, {.gradients = 1e-3}), "");
}

// The type in which there is something to fuse: see described_gpu_test.
TEST(ConvolutionFusion, ComesNearTheReferenceInFloat16) {
  TraceOptions options;
  options.dtype = DType::float16;
  const Tolerance tolerance{.loss = 0.003, .gradients = 0.2, .statistics = 0.005, .logits = 0.006, .parameters = 0.02};
  for (const Problem& problem : layer_problems())
    EXPECT_EQ(difference(problem, options, tolerance), "") << problem.name;
}

// Enough rows for sums in many parts that would be folded.
TEST(ConvolutionFusion, JoinsSumsThatWouldBeFolded) {
  nn::GraphBuilder b("rows", {3, 40, 40});
  const int conv = b.add("conv", nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3, .bias = false}, {b.input()});
  const int bn = b.add("bn", nn::BatchNorm{}, {conv});
  const Problem problem = make_problem(b.finish(b.add("logits", nn::Dense{.out = 4}, {bn})), 9);
  const Calls apart = training_calls(problem.graph, DType::float32, problem.n);
  EXPECT_GT(cut_rows(std::int64_t{problem.n} * 38 * 38, 1).folded_parts, 1);
  EXPECT_EQ(std::ranges::count_if(apart, sums_up), 1);
  EXPECT_EQ(std::ranges::count_if(fused(apart, always), sums_up), 0);
  EXPECT_EQ(difference(problem, {}), "");
}

}  // namespace
}  // namespace dtrain::testing
