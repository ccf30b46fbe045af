// Training and evaluation on a GPU whose streams go on when they like, to the bits of a device that does all at once.
#include <algorithm>
#include <cstring>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/byte_problem.hpp"
#include "common/matrix_problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "helpers/cuda_runtime/natives.hpp"
#include "orders.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;

class GpuTraining : public InEveryOrder {
 protected:
  const std::unique_ptr<backend::Backend> gpu_ = backend::make_cuda_backend(kGpu);
  const std::unique_ptr<backend::Backend> replay_ = backend::cuda::make_large_replay_backend();
};

INSTANTIATE_TEST_SUITE_P(All, GpuTraining, every_order(), OrderName());

void expect_same(const Trace& a, const Trace& b, const std::string& name) {
  EXPECT_EQ(a.contribution, b.contribution) << name;
  EXPECT_EQ(a.after.parameters, b.after.parameters) << name;
  EXPECT_EQ(a.after.statistics, b.after.statistics) << name;
  EXPECT_EQ(a.after.optimizer, b.after.optimizer) << name;
  EXPECT_EQ(a.logits, b.logits) << name;
}

TEST_P(GpuTraining, MovesEveryLayerAsAReplayDoes) {
  TraceOptions options;
  options.shards = 2;
  options.updates = 3;
  for (const Problem& problem : layer_problems()) {
    expect_same(trace_steps(*gpu_, problem, options), trace_steps(*replay_, problem, options), problem.name);
  }
  EXPECT_GT(cuda_runtime::graph_launches(), 0);
}

// What pictures show is copied beside the step, for each batch anew.
TEST_P(GpuTraining, LearnsWhatPicturesShowAsAReplayDoes) {
  std::vector<Problem> problems = region_problems();
  for (Problem& problem : detection_problems()) problems.push_back(std::move(problem));
  for (const Problem& problem : problems) {
    const TraceOptions options{.shards = 2, .updates = 3};
    expect_same(trace_steps(*gpu_, problem, options), trace_steps(*replay_, problem, options), problem.name);
  }
}

// Whatever it is asked for: a copy of the batch may still be under way where nothing of it was downloaded.
TEST_P(GpuTraining, IsDoneWithABatchThatADetectorHasEvaluated) {
  for (const Problem& problem : detection_problems()) {
    const auto executable = gpu_->compile(problem.graph, {.max_samples = problem.n});
    executable->write_state(problem.state);
    std::vector<float> found(static_cast<std::size_t>(problem.n * nn::result_size(problem.graph)));
    executable->evaluate(problem.batch(), found);
    const int waits = cuda_runtime::calls("cudaStreamSynchronize");
    executable->evaluate(problem.batch());
    EXPECT_GT(cuda_runtime::calls("cudaStreamSynchronize"), waits) << problem.name;
  }
}

TEST_P(GpuTraining, MovesEveryTypeByEveryRuleAsAReplayDoes) {
  using nn::OptimizerKind;
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const auto kind : {OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::muon}) {
      TraceOptions options;
      options.dtype = dtype;
      options.updates = 3;
      options.update.rule = {.kind = kind};
      expect_same(trace_steps(*gpu_, matrix_problem(), options), trace_steps(*replay_, matrix_problem(), options),
                  nn::optimizer_name(kind));
    }
  }
}

std::vector<std::string> warnings_of_steps(backend::Executable& executable, const Problem& problem, int steps) {
  executable.write_state(problem.state);
  std::vector<std::string> warnings;
  for (int step = 0; step < steps; ++step) {
    executable.enqueue(problem.batch(), std::vector<backend::ShardRange>{{0, 0, problem.n}}, problem.key,
                       backend::OwnSum{});
    executable.set_sum(backend::OwnSum{});
    executable.apply({{}, 0.05f});
    for (std::string& warning : executable.take_warnings()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

Problem small_resnet() {
  return make_problem(nn::build_network({.name = "resnet", .num_layers = 8, .image = {3, 16, 16}}), 2);
}

// The stand-in for cuDNN has no plan for any convolution.
TEST_P(GpuTraining, WarnsOnceOfConvolutionsThatNoLibraryComputes) {
  const Problem problem = small_resnet();
  const auto executable = gpu_->compile(problem.graph, {.max_samples = problem.n});
  const std::vector<std::string> warnings = warnings_of_steps(*executable, problem, 4);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("by their definition"), std::string::npos) << warnings[0];
  const Json execution = executable->execution();
  EXPECT_TRUE(execution.at("recorded").as_bool());
  EXPECT_EQ(execution.at("by_definition").as_number(),
            static_cast<double>(execution.at("convolutions").as_array().size()));
  EXPECT_TRUE(execution.at("convolutions").as_array().front().at("engine").is_null());
}

TEST_P(GpuTraining, WarnsWhereAStepIsNotOneLaunch) {
  const Problem problem = small_resnet();
  const auto executable = gpu_->compile(problem.graph, {.max_samples = problem.n});
  cuda_runtime::fail_next("cudaStreamBeginCapture", cudaErrorStreamCaptureUnsupported);
  const std::vector<std::string> warnings = warnings_of_steps(*executable, problem, 3);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("could not be captured"), std::string::npos) << warnings[0];
  EXPECT_FALSE(executable->execution().at("recorded").as_bool());
}

// The first native kernel of the step fails, or leaves numbers that are not those of its definition.
TEST_P(GpuTraining, StaysWithTheDefinitionWhereANativeKernelFailsOrComputesSomethingElse) {
  const Problem problem = small_resnet();
  const auto replay = replay_->compile(problem.graph, {.max_samples = problem.n});
  warnings_of_steps(*replay, problem, 4);
  for (const auto& [error, reason] :
       {std::pair{cudaErrorMemoryAllocation, "out of memory"}, std::pair{cudaSuccess, "not that of its definition"}}) {
    bool tried = false;
    cuda_runtime::play_natives([&](const backend::cuda::Work& work, cudaStream_t) -> std::optional<cudaError_t> {
      if (!work.holds<backend::cuda::NormForward<float>>() || std::exchange(tried, true)) return std::nullopt;
      return error;
    });
    const auto executable = gpu_->compile(problem.graph, {.max_samples = problem.n});
    const std::vector<std::string> warnings = warnings_of_steps(*executable, problem, 4);
    cuda_runtime::play_natives({});
    const auto found = std::ranges::find_if(
        warnings, [](const std::string& warning) { return warning.find("own kernels are not used") < warning.size(); });
    ASSERT_TRUE(found != warnings.end()) << reason;
    EXPECT_NE(found->find(reason), std::string::npos) << *found;
    EXPECT_EQ(found->find("1 of"), 0u) << *found;
    EXPECT_EQ(executable->state().parameters, replay->state().parameters) << reason;
  }
}

TEST_P(GpuTraining, MeasuresEachOperationByTheClockOfTheGpu) {
  const Problem problem = small_resnet();
  const auto executable = gpu_->compile(problem.graph, {.max_samples = problem.n});
  executable->write_state(problem.state);
  const backend::Profile profile = executable->profile(problem.batch(), 1);
  EXPECT_GT(profile.of_shard.size(), 20u);
  constexpr double kBetweenTwoEvents = 1e-3, kTimes = 20;
  for (const backend::OperationTime& operation : profile.of_shard) {
    EXPECT_NEAR(operation.seconds, kBetweenTwoEvents / kTimes, 1e-10) << operation.name;
  }
}

// A problem of bytes in page-locked memory, as a loader's batches are.
class LockedBatch {
 public:
  LockedBatch(const backend::Backend& backend, const nn::Graph& graph, int n, std::uint64_t seed)
      : problem(graph, n, seed), memory_(backend.batches().memory(problem.bytes.size())) {
    std::memcpy(memory_.get(), problem.bytes.data(), problem.bytes.size());
  }
  backend::HostBatch host(std::uint64_t staged = 0) const {
    backend::HostBatch batch = problem.batch(staged);
    batch.pixels.bytes = reinterpret_cast<const std::uint8_t*>(memory_.get());
    return batch;
  }
  const ByteProblem problem;

 private:
  const std::shared_ptr<std::byte> memory_;
};

struct Job {
  Job(const backend::Backend& backend, const Problem& problem)
      : executable(backend.compile(problem.graph, {.max_samples = problem.n})) {
    executable->write_state(problem.state);
  }
  // With the shards' sum here, or on the host.
  void step(const Problem& problem, const backend::HostBatch& batch, bool here) {
    const std::vector<backend::ShardRange> ranges = split_samples(problem.n, 4);
    const backend::Update update{{.momentum = 0.9f}, 0.05f};
    if (here) {
      executable->enqueue(batch, ranges, problem.key, backend::OwnSum{});
      executable->set_sum(backend::OwnSum{});
      return executable->apply(update);
    }
    CollectingSink sink(problem.graph, ranges);
    executable->enqueue(batch, ranges, problem.key, sink);
    executable->synchronize();
    executable->apply(sink.sum(), update);
  }
  std::unique_ptr<backend::Executable> executable;
};

// The next batch is staged before a step, as train/batch_feed.hpp does it; sizes change, and some batches are given
// that nobody staged.
TEST_P(GpuTraining, ComputesBatchesThatAreStagedAheadAsAReplayDoes) {
  const nn::Graph graph = layer_problems().back().graph;
  for (const bool here : {false, true}) {
    std::vector<std::unique_ptr<LockedBatch>> batches;
    for (int k = 0; k < 8; ++k) {
      batches.push_back(std::make_unique<LockedBatch>(*gpu_, graph, k == 4 ? 9 : 5 + k % 2, 1 + k));
    }
    const Problem& first = batches[4]->problem.floats;  // the largest
    Job on_gpu(*gpu_, first), on_replay(*replay_, first);
    const int marks = cuda_runtime::calls("cudaEventRecord");
    std::uint64_t staged = on_gpu.executable->stage(batches[0]->host());
    for (std::size_t k = 0; k < batches.size(); ++k) {
      const bool ahead = k + 1 < batches.size() && k != 5;
      const std::uint64_t next = ahead ? on_gpu.executable->stage(batches[k + 1]->host()) : 0;
      const Problem& problem = batches[k]->problem.floats;
      on_gpu.step(problem, batches[k]->host(staged), here);
      on_replay.step(problem, batches[k]->problem.batch(), here);
      if (!here && k % 3 == 2) {
        EXPECT_EQ(on_gpu.executable->evaluate(batches[k]->host()).loss_sum,
                  on_replay.executable->evaluate(batches[k]->problem.batch()).loss_sum);
      }
      staged = next;
      batches[k].reset();  // its work is done
    }
    if (here) {  // each batch was brought there once: with a mark before and one behind
      EXPECT_EQ(cuda_runtime::calls("cudaEventRecord") - marks, 2 * static_cast<int>(batches.size()));
    }
    EXPECT_EQ(on_gpu.executable->state().parameters, on_replay.executable->state().parameters) << here;
    EXPECT_EQ(on_gpu.executable->state().statistics, on_replay.executable->state().statistics) << here;
    EXPECT_EQ(on_gpu.executable->state().optimizer, on_replay.executable->state().optimizer) << here;
  }
}

// Bytes, places, labels and ids travel once; beside them, each view is one small copy.
TEST_P(GpuTraining, MakesTheViewsOfAnEvaluationOnTheGpu) {
  const LockedBatch batch(*gpu_, layer_problems().back().graph, 6, 1);
  const Problem& problem = batch.problem.floats;
  const Job on_gpu(*gpu_, problem), on_replay(*replay_, problem);
  const auto classes = static_cast<std::size_t>(problem.graph.classes());
  for (const int round : {1, 2, 3}) {  // the work is recorded, captured and launched
    for (const int number : {1, 2, 6}) {
      std::vector<float> a(6 * classes), b(6 * classes);
      const std::uint64_t staged = on_gpu.executable->stage(batch.host());
      const int copies = cuda_runtime::calls("cudaMemcpyAsync");
      EXPECT_EQ(on_gpu.executable->evaluate(batch.host(staged), nn::image_views(number), a).loss_sum,
                on_replay.executable->evaluate(batch.problem.batch(), nn::image_views(number), b).loss_sum);
      EXPECT_EQ(cuda_runtime::calls("cudaMemcpyAsync") - copies, number + 2) << "views, counts and logits";
      EXPECT_EQ(a, b) << round << " " << number;
    }
  }
}

TEST_P(GpuTraining, LetsGoOfBatchesThatNobodyComputes) {
  const nn::Graph graph = layer_problems().back().graph;
  LockedBatch a(*gpu_, graph, 4, 1), b(*gpu_, graph, 4, 2), c(*gpu_, graph, 7, 3);
  const Job job(*gpu_, c.problem.floats);
  for (const LockedBatch* batch : {&a, &b, &c}) job.executable->stage(batch->host());
}

TEST_P(GpuTraining, ProfilesEachOperation) {
  const Problem problem = layer_problems().back();
  const Job job(*gpu_, problem);
  EXPECT_GT(job.executable->profile(problem.batch(), 2).of_shard.size(), 3u);
}

}  // namespace
}  // namespace dtrain::testing
