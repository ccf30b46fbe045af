// What only a GPU can show: that launches, recorded graphs and cuDNN compute what the reference and the CPU compute.
// DTRAIN_TEST_GPU names the GPU, 0 by default; `replay` puts this CPU in its place, to try the tests themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/byte_problem.hpp"
#include "common/executable_contract.hpp"
#include "common/matrix_problem.hpp"
#include "common/replay_device.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;

std::unique_ptr<backend::Backend> make_gpu_with(const backend::CudaOptions& options) {
  const char* const named = std::getenv("DTRAIN_TEST_GPU");
  if (named && std::string(named) == "replay") return backend::cuda::make_large_replay_backend();
  return backend::make_cuda_backend(named ? std::atoi(named) : 0, options);
}
std::unique_ptr<backend::Backend> make_gpu() { return make_gpu_with({}); }

INSTANTIATE_TEST_SUITE_P(Gpu, ExecutableContract, ::testing::Values(make_gpu));

class GpuLayers : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(All, GpuLayers, ::testing::ValuesIn(layer_problems()),
                         [](const auto& of) { return of.param.name; });

INSTANTIATE_TEST_SUITE_P(Detection, GpuLayers, ::testing::ValuesIn(detection_problems()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Regions, GpuLayers, ::testing::ValuesIn(region_problems()),
                         [](const auto& of) { return of.param.name; });

std::string difference(const Problem& problem, const TraceOptions& options, const Tolerance& tolerance = {}) {
  return compare_backends(*make_gpu(), *backend::make_reference_backend(), problem, options, tolerance);
}

bool chooses_regions(const Problem& problem) {
  return std::holds_alternative<nn::RegionLoss>(problem.graph.nodes.back().layer);
}
// Scores that lie close together change places, and the slope of a distance of boxes its sign.
void allow_other_order(const Problem& problem, Tolerance& tolerance) {
  if (!nn::detection_of(problem.graph)) return;
  tolerance.logits = std::numeric_limits<double>::infinity();
  tolerance.parameters = 0.1;
}

TEST_P(GpuLayers, AgreesWithTheReference) { EXPECT_EQ(difference(GetParam(), {}), ""); }

TEST_P(GpuLayers, AgreesWithTheReferenceInShards) {
  TraceOptions options;
  options.shards = 4;
  EXPECT_EQ(difference(GetParam(), options, {.gradients = 1e-3}), "");
}

TEST_P(GpuLayers, ComesNearTheReferenceInBfloat16) {
  const auto gpu = make_gpu();
  if (const char* const why = gpu->why_not(DType::bfloat16)) GTEST_SKIP() << why;
  TraceOptions options;
  options.dtype = DType::bfloat16;
  Tolerance tolerance{.loss = 0.02, .gradients = 0.3, .statistics = 0.02, .logits = 0.04, .parameters = 0.04};
  if (chooses_regions(GetParam())) GTEST_SKIP() << "scores that are rounded choose other regions";
  allow_other_order(GetParam(), tolerance);
  EXPECT_EQ(difference(GetParam(), options, tolerance), "");
}

TEST_P(GpuLayers, ComesNearTheReferenceInFloat16) {
  TraceOptions options;
  options.dtype = DType::float16;
  Tolerance tolerance{.loss = 0.003, .gradients = 0.2, .statistics = 0.005, .logits = 0.006, .parameters = 0.02};
  if (chooses_regions(GetParam())) GTEST_SKIP() << "scores that are rounded choose other regions";
  allow_other_order(GetParam(), tolerance);
  EXPECT_EQ(difference(GetParam(), options, tolerance), "");
}

Problem resnet(int n, const std::string& name = "resnet-v1", nn::Shape image = {3, 32, 32}) {
  const int layers = image.h > 32 ? 18 : 8;
  return make_problem(nn::build_network({.name = name, .num_layers = layers, .image = image, .classes = 10}), n);
}

std::unique_ptr<backend::Executable> compiled(const Problem& problem, DType dtype = DType::float32) {
  auto executable = make_gpu()->compile(problem.graph, {.dtype = dtype, .max_samples = problem.n});
  executable->write_state(problem.state);
  return executable;
}

std::vector<float> contribution(backend::Executable& executable, const Problem& problem, int shards) {
  const std::vector<backend::ShardRange> ranges = split_samples(problem.n, shards);
  CollectingSink sink(problem.graph, ranges);
  executable.enqueue(problem.batch(), ranges, problem.key, sink);
  executable.synchronize();
  return sink.sum();
}

// Few samples: with many, some input of a ReLU lies so near to 0 that rounding decides on its side.
TEST(Gpu, TrainsResnetsAsTheCpuDoes) {
  for (const char* name : {"resnet-v1", "resnet"}) {
    EXPECT_EQ(compare_backends(*make_gpu(), *backend::make_cpu_backend(), resnet(4, name)), "") << name;
  }
}

// The first run is made of launches, the second is captured, later ones are one launch.
TEST(Gpu, GivesTheSameBitsHoweverAStepIsStarted) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Problem problem = resnet(8);
    const auto executable = compiled(problem, dtype);
    const std::vector<float> first = contribution(*executable, problem, 2);
    for (int run = 0; run < 3; ++run) EXPECT_EQ(contribution(*executable, problem, 2), first) << run;
    EXPECT_EQ(contribution(*compiled(problem, dtype), problem, 2), first);
  }
}

TEST(Gpu, MovesMatricesByMuonAsTheReferenceDoes) {
  TraceOptions options;
  options.updates = 3;
  for (const nn::Optimizer& rule : {nn::Optimizer{.kind = nn::OptimizerKind::muon}, muon_of_odd_numbers()}) {
    options.update.rule = rule;
    EXPECT_EQ(difference(matrix_problem(), options), "") << rule.newton_schulz.steps;
  }
}

// The network's own matrices, in every type: on tensor cores where the type has two bytes.
TEST(Gpu, StepsByMuonAsTheCpuDoesButForTheRoundingOfTheType) {
  const auto gpu = make_gpu();
  const nn::Graph speednet = nn::build_network({.name = "speednet", .image = {3, 32, 32}, .classes = 10});
  for (const nn::Graph& graph : {speednet, matrix_problem().graph}) {
    for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      if (gpu->why_not(dtype)) continue;
      EXPECT_LT(muon_step_error(*gpu, *backend::make_cpu_backend(), graph, dtype), allowed_muon_error(dtype))
          << graph.name << " in " << dtype_name(dtype);
    }
  }
}

double loss_after(backend::Executable& executable, const Problem& problem, int steps) {
  double loss = 0;
  const std::vector<backend::ShardRange> whole = split_samples(problem.n, 1);
  for (int step = 0; step < steps; ++step) {
    const std::vector<float> sum = [&] {
      CollectingSink sink(problem.graph, whole);
      executable.enqueue(problem.batch(), whole, problem.key, sink);
      executable.synchronize();
      return sink.sum();
    }();
    loss = backend::metrics_of(ContributionLayout(problem.graph), sum).loss_sum / problem.n;
    executable.apply(sum, {{}, 0.02f});
  }
  return loss;
}

TEST(Gpu, LearnsAsTheCpuDoes) {
  constexpr int kSteps = 8;
  const Problem problem = resnet(8);
  const auto on_cpu = backend::make_cpu_backend()->compile(problem.graph, {.max_samples = problem.n});
  on_cpu->write_state(problem.state);
  const double expected = loss_after(*on_cpu, problem, kSteps);
  EXPECT_NEAR(loss_after(*compiled(problem), problem, kSteps), expected, 0.02 * expected + 0.01);
  EXPECT_NEAR(loss_after(*compiled(problem, DType::bfloat16), problem, kSteps), expected, 0.1 * expected + 0.05);
  EXPECT_NEAR(loss_after(*compiled(problem, DType::float16), problem, kSteps), expected, 0.05 * expected + 0.02);
}

TEST(Gpu, GoesOnFromWhatTheCpuTrained) {
  const Problem problem = resnet(8);
  const auto on_cpu = backend::make_cpu_backend()->compile(problem.graph, {.max_samples = problem.n});
  on_cpu->write_state(problem.state);
  loss_after(*on_cpu, problem, 3);
  const auto on_gpu = compiled(problem);
  on_gpu->write_state(on_cpu->read_state());
  std::vector<float> a(static_cast<std::size_t>(problem.n) * 10), b(a.size());
  on_cpu->evaluate(problem.batch(), a);
  on_gpu->evaluate(problem.batch(), b);
  EXPECT_LT(relative_difference(b, a), 1e-3);
}

TEST(Gpu, AddsShardsUpOnTheDeviceAsOnTheHost) {
  const Problem problem = resnet(8);
  const auto here = compiled(problem), there = compiled(problem);
  const std::vector<backend::ShardRange> ranges = split_samples(problem.n, 2);
  here->enqueue(problem.batch(), ranges, problem.key, backend::OwnSum{});
  here->set_sum(backend::OwnSum{});
  here->apply({});
  there->apply(contribution(*there, problem, 2), {});
  EXPECT_EQ(here->state().parameters, there->state().parameters);
  EXPECT_EQ(here->state().statistics, there->state().statistics);
}

// Page-locked memory, and a copy beside the step before: what replays cannot show.
TEST(Gpu, ComputesBytesThatWereStagedAsFloatsThatWereNot) {
  const nn::Graph graph = resnet(1).graph;
  const ByteProblem a(graph, 8, 1), b(graph, 8, 2);
  const auto gpu = make_gpu();
  const backend::BatchWish wish = gpu->batches();
  const auto executable = gpu->compile(graph, {.max_samples = 8}), plain = gpu->compile(graph, {.max_samples = 8});
  executable->write_state(a.floats.state);
  plain->write_state(a.floats.state);
  std::vector<std::shared_ptr<std::byte>> memory;
  std::vector<backend::HostBatch> batches;
  for (const ByteProblem* problem : {&a, &b}) {
    memory.push_back(wish.memory(problem->bytes.size()));
    std::memcpy(memory.back().get(), problem->bytes.data(), problem->bytes.size());
    batches.push_back(problem->batch());
    batches.back().pixels.bytes = reinterpret_cast<const std::uint8_t*>(memory.back().get());
  }
  const std::vector<backend::ShardRange> whole = split_samples(8, 1);
  batches[0].staged = executable->stage(batches[0]);
  for (std::size_t step = 0; step < 8; ++step) {
    backend::HostBatch& next = batches[(step + 1) % 2];
    next.staged = executable->stage(next);
    const ByteProblem& problem = step % 2 == 0 ? a : b;
    CollectingSink sink(graph, whole);
    executable->enqueue(batches[step % 2], whole, problem.floats.key, sink);
    EXPECT_EQ(sink.sum(), contribution(*plain, problem.floats, 1)) << step;
  }
}

// Timing computes each convolution several times before the step does; a later run only reads what was kept.
TEST(Gpu, ComputesByTimedPlansAsTheReferenceDoesAndKeepsThem) {
  const TemporaryFolder folder;
  const Problem problem = resnet(8);
  const backend::CudaOptions timing{.plans_to_time = 4, .plans = folder.path()};
  const auto timed = make_gpu_with(timing);
  EXPECT_EQ(compare_backends(*timed, *backend::make_reference_backend(), problem), "");
  const auto bits = [&](const backend::Backend& gpu) {
    const auto executable = gpu.compile(problem.graph, {.dtype = DType::bfloat16, .max_samples = problem.n});
    executable->write_state(problem.state);
    return contribution(*executable, problem, 1);
  };
  const std::vector<float> first = bits(*timed);
  EXPECT_EQ(bits(*make_gpu_with({.plans = folder.path()})), first);
}

TEST(Gpu, ComputesWhatTheReferenceDoesWhereBitsMayDiffer) {
  const auto gpu = make_gpu_with({.deterministic = false, .plans = {}});
  EXPECT_EQ(compare_backends(*gpu, *backend::make_reference_backend(), resnet(8)), "");
}

TEST(Gpu, ComesNearTheReferenceInTf32) {
  const Tolerance tolerance{.loss = 0.01, .gradients = 0.05, .statistics = 0.01, .logits = 0.01, .parameters = 0.01};
  EXPECT_EQ(compare_backends(*make_gpu_with({.tf32 = true, .plans = {}}), *backend::make_reference_backend(), resnet(4),
                             {}, tolerance),
            "");
}

// Fused passes round at other places, and read factors of the type of values.
TEST(Gpu, ComputesJoinedPassesNearlyAsPassesApart) {
  const Problem problem = resnet(8);
  const auto gradients = [&](bool fuses) {
    const auto gpu = make_gpu_with({.fuses = fuses, .plans = {}});
    const auto executable = gpu->compile(problem.graph, {.dtype = DType::float16, .max_samples = problem.n});
    executable->write_state(problem.state);
    std::vector<float> all = contribution(*executable, problem, 1);
    all.resize(problem.state.parameters.size());
    return all;
  };
  EXPECT_LT(relative_difference(gradients(true), gradients(false)), 0.1);
}

TEST(Gpu, SaysWhatFitsWhereABatchIsTooLarge) {
  const Problem problem = resnet(1, "resnet", {3, 224, 224});
  EXPECT_THROW(make_gpu()->compile(problem.graph, {.max_samples = 1 << 20}), UsageError);
}

}  // namespace
}  // namespace dtrain::testing
