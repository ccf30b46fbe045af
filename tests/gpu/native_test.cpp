// Native kernels compute the bits of their definitions, for every shape and type of the networks: the same steps
// on one GPU, once with native kernels and once with definitions in their place. See src/backend/cuda/gpu/native.
#include <gtest/gtest.h>

#include <cstdlib>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "backend/cuda/cuda_backend.hpp"
#include "backend/cuda/gpu/gpu_device.hpp"
#include "common/matrix_problem.hpp"
#include "common/problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using namespace backend::cuda;
using backend::DType;

bool is_replay() {
  const char* const named = std::getenv("DTRAIN_TEST_GPU");
  return named && std::string(named) == "replay";
}

// Joins of convolutions with norms would leave less to compare.
std::shared_ptr<Device> open_device() {
  if (is_replay()) return make_replay_device();
  const char* const named = std::getenv("DTRAIN_TEST_GPU");
  const backend::CudaReport report = backend::look_for_cuda();
  if (!report.problem.empty()) throw UsageError(report.problem, report.hint);
  return open_gpu(named ? std::atoi(named) : 0, report.libraries.front().file, {.fuses = false, .plans = {}}, {});
}

std::vector<Call> definitions_of(std::vector<Call> calls) {
  std::vector<Call> kernels;
  for (Call& call : calls) {
    std::vector<Call> definition;
    if (!call.work.holds<Convolution>()) definition = definitions_of(definition_of(call));
    if (definition.empty()) definition.push_back(std::move(call));
    for (Call& kernel : definition) kernels.push_back(std::move(kernel));
  }
  return kernels;
}

// A device that is given the definitions of all operations but convolutions.
class ByDefinition final : public Device {
 public:
  explicit ByDefinition(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  std::uint64_t free_bytes() const override { return device_->free_bytes(); }
  std::byte* allocate(std::uint64_t bytes) override { return device_->allocate(bytes); }
  void release(std::byte* memory) noexcept override { device_->release(memory); }
  std::byte* allocate_host(std::uint64_t bytes) override { return device_->allocate_host(bytes); }
  void release_host(std::byte* memory) noexcept override { device_->release_host(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override { device_->upload(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { device_->download(to, from, bytes); }
  void synchronize() override { device_->synchronize(); }
  DeviceMark mark() override { return device_->mark(); }
  void wait_for(DeviceMark mark) override { device_->wait_for(mark); }
  std::unique_ptr<SideCopy> side_copy() override { return device_->side_copy(); }
  std::unique_ptr<Recording> record(std::vector<Call> calls) override {
    return device_->record(definitions_of(std::move(calls)));
  }
  double seconds_of(std::vector<Call> calls, int times) override {
    return device_->seconds_of(definitions_of(std::move(calls)), times);
  }
  bool fuses(const Convolution& work) const override { return device_->fuses(work); }
  std::uint64_t workspace_bytes() const override { return device_->workspace_bytes(); }

 private:
  const std::shared_ptr<Device> device_;
};

std::unique_ptr<backend::Backend> backend_on(const std::shared_ptr<Device>& device) {
  return make_backend_on({"a GPU", true}, [device] { return device; });
}

// Contributions of three steps on the same samples (launches, a capture, its launch), then the state after an update.
std::vector<float> trained(const backend::Backend& gpu, const Problem& problem, DType dtype) {
  const auto executable = gpu.compile(problem.graph, {.dtype = dtype, .max_samples = problem.n});
  executable->write_state(problem.state);
  const std::vector<backend::ShardRange> whole = split_samples(problem.n, 1);
  std::vector<float> all;
  for (int run = 0; run < 3; ++run) {
    CollectingSink sink(problem.graph, whole);
    executable->enqueue(problem.batch(), whole, problem.key, sink);
    executable->synchronize();
    const std::vector<float> sum = sink.sum();
    all.insert(all.end(), sum.begin(), sum.end());
  }
  executable->enqueue(problem.batch(), whole, problem.key, backend::OwnSum{});
  executable->set_sum(backend::OwnSum{});
  executable->apply({{}, 0.01f});
  const backend::ModelState state = executable->state();
  all.insert(all.end(), state.parameters.begin(), state.parameters.end());
  all.insert(all.end(), state.statistics.begin(), state.statistics.end());
  return all;
}

void expect_same_bits(const Problem& problem) {
  const auto device = open_device();
  const auto native = backend_on(device), defined = backend_on(std::make_shared<ByDefinition>(device));
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    if (native->why_not(dtype)) continue;
    EXPECT_TRUE(trained(*native, problem, dtype) == trained(*defined, problem, dtype))
        << problem.name << " in " << dtype_name(dtype);
  }
}

TEST(NativeKernels, GiveTheBitsOfTheirDefinitionsInEveryLayer) {
  for (const Problem& problem : layer_problems()) expect_same_bits(problem);
}

// Batches as they are trained with, as far as a GPU has memory for them; replayed, a few samples of what is small.
TEST(NativeKernels, GiveTheBitsOfTheirDefinitionsInEveryNetwork) {
  struct Case {
    nn::NetworkOptions network;
    int n;
  };
  const nn::Shape photograph{3, 224, 224}, thumbnail{3, 32, 32};
  std::vector<Case> cases = {{{.name = "resnet-v1", .num_layers = 20, .image = thumbnail}, 512},
                             {{.name = "speednet", .image = thumbnail}, 2000},
                             {{.name = "resnet-v1", .num_layers = 18, .image = photograph, .classes = 1000}, 128},
                             {{.name = "resnet-v1", .num_layers = 50, .image = photograph, .classes = 1000}, 128}};
  if (is_replay()) cases = {{{.name = "resnet-v1", .num_layers = 8, .image = thumbnail}, 2}};
  for (const auto& [network, n] : cases) expect_same_bits(make_problem(nn::build_network(network), n));
}

// Products on tensor cores add in another order than their definition, in float32 in the same one.
TEST(NativeKernels, StepByMuonAsTheirDefinitionsDoButForRoundings) {
  const auto device = open_device();
  const auto native = backend_on(device), defined = backend_on(std::make_shared<ByDefinition>(device));
  const int width = is_replay() ? 8 : 0;
  const nn::Graph speednet = nn::build_network({.name = "speednet", .image = {3, 32, 32}, .width = width});
  for (const nn::Graph& graph : {speednet, matrix_problem().graph}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      if (native->why_not(dtype)) continue;
      EXPECT_LT(muon_step_error(*native, *defined, graph, dtype), allowed_muon_error(dtype))
          << graph.name << " in " << dtype_name(dtype);
    }
  }
}

// A worker that joins does its first step beside workers that did many.
TEST(NativeKernels, StepByMuonInTheFirstRunAsInLaterOnes) {
  const auto native = backend_on(open_device());
  const nn::Graph graph = matrix_problem().graph;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    if (native->why_not(dtype)) continue;
    EXPECT_EQ(muon_step(*native, graph, dtype, 1), muon_step(*native, graph, dtype, 4)) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace dtrain::testing
