// What one GPU shows of reductions there: that the real NCCL takes our calls, and that additions give the bits of the
// CPU. Two ranks need two GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>

#include <dtrain/backend/accelerator.hpp>
#include <dtrain/backend/cuda.hpp>
#include <dtrain/nn/networks.hpp>

#include "comm/arithmetic.hpp"
#include "comm/nccl/link.hpp"
#include "comm/nccl/nccl_communicator.hpp"
#include "common/adder_up.hpp"
#include "common/problem.hpp"
#include "common/replay_accelerator.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "train/loop/step.hpp"

namespace dtrain::testing {
namespace {

using namespace std::chrono_literals;
using comm::nccl::Clock;

bool is_replay() {
  const char* const named = std::getenv("DTRAIN_TEST_GPU");
  return named && std::string(named) == "replay";
}

std::shared_ptr<Accelerator> open_gpu() {
  if (is_replay()) return backend::cuda::make_replay_accelerator();
  const char* const named = std::getenv("DTRAIN_TEST_GPU");
  return backend::open_accelerator(named ? std::atoi(named) : 0);
}

// Empty: there is none.
Path nccl_file() {
  if (is_replay()) return DTRAIN_NCCL_STANDIN;
  for (const backend::CudaLibrary& library : backend::look_for_cuda().libraries) {
    if (library.name == "NCCL" && library.problem.empty()) return library.file;
  }
  return {};
}

struct OnGpu {
  OnGpu(Accelerator& gpu, const std::vector<float>& values)
      : device(gpu),
        size(static_cast<std::int64_t>(values.size())),
        memory(gpu.allocate(values.size() * sizeof(float))) {
    device.upload(memory, values.data(), values.size() * sizeof(float));
  }
  ~OnGpu() { device.release(memory); }
  OnGpu(const OnGpu&) = delete;
  float* floats() const { return reinterpret_cast<float*>(memory); }
  bfloat16_bits* halves() const { return reinterpret_cast<bfloat16_bits*>(memory); }
  std::vector<float> read() const {
    std::vector<float> values(static_cast<std::size_t>(size));
    device.download(values.data(), memory, values.size() * sizeof(float));
    return values;
  }
  Accelerator& device;
  const std::int64_t size;
  std::byte* const memory;
};

// Every magnitude, both signs, and what rounds half-way.
std::vector<float> awkward(std::size_t size, float factor) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = factor * std::ldexp(1.0f + static_cast<float>(i % 257) / 256, static_cast<int>(i % 61) - 30);
    if (i % 3 == 0) values[i] = -values[i];
  }
  values[0] = std::numeric_limits<float>::infinity();
  return values;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(GpuReduction, AddsToTheBitsOfTheCpu) {
  const auto device = open_gpu();
  const std::vector<float> left = awkward(100'003, 1), right = awkward(100'003, 0.73f);
  for (const bool rounded : {false, true}) {
    const OnGpu a(*device, left), b(*device, right);
    device->add(a.floats(), a.floats(), b.floats(), a.size, rounded);
    std::vector<float> expected(left.size());
    comm::add(expected.data(), left.data(), right.data(), a.size, rounded);
    EXPECT_TRUE(same_bits(a.read(), expected)) << rounded;
  }
}

TEST(GpuReduction, RoundsToTheBitsOfTheCpu) {
  const auto device = open_gpu();
  const std::vector<float> values = awkward(100'003, 1.0031f);
  const OnGpu from(*device, values), narrow(*device, values), wide(*device, values);
  device->narrow(narrow.halves(), from.floats(), from.size);
  device->widen(wide.floats(), narrow.halves(), from.size);
  std::vector<float> expected = values;
  comm::round_to_bfloat16(expected.data(), from.size);
  EXPECT_TRUE(same_bits(wide.read(), expected));
}

class GpuNccl : public ::testing::Test {
 protected:
  void SetUp() override {
    if (file_.empty()) GTEST_SKIP() << "no NCCL";
  }
  const Path file_ = nccl_file();
};

TEST_F(GpuNccl, ARankAloneMeetsItselfSendsAndReceives) {
  const auto device = open_gpu();
  const comm::nccl::Api api = comm::nccl::load(file_);
  const auto mesh = comm::make_single();
  const std::atomic<bool> aborted{false};
  const auto soon = [] { return Clock::now() + 60s; };
  for (int generation = 0; generation < 3; ++generation) {
    comm::nccl::Link link(api, *mesh, *device, aborted, 60s);
    const std::vector<float> values = awkward(1'000'003, 1);
    const OnGpu from(*device, values), to(*device, std::vector<float>(values.size()));
    link.group(
        [&] {
          link.send(from.floats(), from.size, comm::nccl::DataType::float32, 0);
          link.receive(to.floats(), to.size, comm::nccl::DataType::float32, 0);
        },
        soon());
    link.wait_for_device(soon());
    EXPECT_TRUE(same_bits(to.read(), values));
  }
}

TEST_F(GpuNccl, ACommunicatorOfOneRankGivesTheBitsOfTheTree) {
  const comm::ReductionShape shape{.shards = 4, .size = 300'001, .rounded = 1001};
  const auto sum_of = [&](comm::Communicator& comm) {
    const auto reduction = comm.begin_reduction(shape, {});
    for (int shard = 0; shard < shape.shards; ++shard) {
      const std::vector<float> leaf = awkward(static_cast<std::size_t>(shape.size), 1.0f + static_cast<float>(shard));
      std::ranges::copy(leaf, reduction->leaf(shard).begin());
      reduction->ready(shard, 0, shape.size);
    }
    return reduction->finish().sum;
  };
  const auto gpu = comm::make_nccl_communicator(comm::make_single(), {file_, open_gpu()}, 60s, 60s);
  EXPECT_TRUE(same_bits(sum_of(*gpu), sum_of(*comm::make_single())));
}

// Gradients as backward leaves them, part by part, on the backend's queue and taken by the accelerator's.
struct OnQueues {
  std::unique_ptr<backend::Backend> backend =
      is_replay()
          ? backend::cuda::make_large_replay_backend()
          : backend::make_cuda_backend(std::getenv("DTRAIN_TEST_GPU") ? std::atoi(std::getenv("DTRAIN_TEST_GPU")) : 0);
  // A sum of several parts; a replay has no time for that.
  Problem problem =
      make_problem(is_replay() ? nn::build_network({.name = "resnet", .num_layers = 8, .image = {3, 16, 16}})
                               : nn::build_network({.name = "resnet", .num_layers = 18, .image = {3, 48, 48}}),
                   6);
  std::vector<backend::ShardRange> shards = {{0, 0, 2}, {1, 2, 0}, {2, 2, 2}, {3, 4, 2}};
  std::unique_ptr<backend::Executable> compile() const {
    auto executable = backend->compile(problem.graph, {.dtype = backend::DType::bfloat16, .max_samples = problem.n});
    executable->write_state(problem.state);
    return executable;
  }
};

TEST(GpuReduction, TakesGradientsFromTheQueueOfTheBackend) {
  const OnQueues on;
  const auto device = open_gpu();
  const auto there = on.compile(), host = on.compile();
  AdderUp adder(*device, there->device_parts(), backend::ContributionLayout(on.problem.graph).size());
  for (int step = 0; step < 4; ++step) {
    there->enqueue(on.problem.batch(), on.shards, on.problem.key, adder);
    there->set_sum(adder.finish());
    there->apply({.rule = {}, .learning_rate = 0.01f});
    CollectingSink sink(on.problem.graph, on.shards);
    host->enqueue(on.problem.batch(), on.shards, on.problem.key, sink);
    host->apply(sink.sum(), {.rule = {}, .learning_rate = 0.01f});
  }
  EXPECT_TRUE(same_bits(there->state().parameters, host->state().parameters));
}

TEST_F(GpuNccl, ACommunicatorOfOneRankReducesGradientsWhereTheyAre) {
  const OnQueues on;
  const auto executable = on.compile();
  const backend::ContributionLayout layout(on.problem.graph);
  const comm::ReductionShape shape{.shards = 4, .size = layout.size(), .rounded = layout.gradients};
  std::vector<std::vector<float>> sums;
  for (const bool any_order : {false, true}) {
    const auto gpu = comm::make_nccl_communicator(comm::make_single(), {file_, open_gpu(), any_order}, 60s, 60s);
    train::StepRunner step(*executable, *gpu, shape);
    step.compute(on.problem.batch(), on.shards, on.problem.key, {});
    step.reduce();
    EXPECT_EQ(step.metrics().count, on.problem.n);
    step.apply({.rule = {}, .learning_rate = 0.01f});
    sums.push_back(executable->state().parameters);
    executable->write_state(on.problem.state);
  }
  EXPECT_FALSE(same_bits(sums[0], on.problem.state.parameters));
  EXPECT_TRUE(same_bits(sums[0], sums[1])) << "of one rank there is but one order";
}

}  // namespace
}  // namespace dtrain::testing
