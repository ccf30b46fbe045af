// Which of the engines that cuDNN names computes a convolution, and what is kept of that.
#include <algorithm>
#include <map>

#include "common/temporary_folder.hpp"
#include "gpu/gpu_device.hpp"
#include "helpers/cuda_runtime/cudnn.hpp"
#include "libraries/shared_object.hpp"
#include "orders.hpp"

namespace dtrain::backend::cuda {
namespace {

namespace runtime = testing::cuda_runtime;
using runtime::CudnnEngine;

constexpr ConvolutionShape kPlanShape{2, 8, 4, 4, 8, 4, 4, 3, 3, 1, 1, 1, 1, 1};

class GpuPlans : public testing::InEveryOrder {
 protected:
  GpuPlans() { know(&knowledge_); }
  ~GpuPlans() override { know(nullptr); }

  // What is taken of these engines by a process that begins now. Each writes its number; those of `wavers_` write
  // something else each time.
  std::string engine_of(const std::vector<CudnnEngine>& engines, const CudaOptions& options = {}) {
    knowledge_.engines = engines;
    const std::shared_ptr<Device> device =
        open_gpu(kGpu, DTRAIN_CUDNN_STANDIN, options, PlanStore(folder_.path(), "a GPU"));
    DeviceMemory a(*device, kPlanShape.inputs() * sizeof(float)), b(*device, kPlanShape.weights() * sizeof(float)),
        result(*device, kPlanShape.outputs() * sizeof(float)), sums(*device, 1 << 20);
    if (no_memory_left_) runtime::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
    const auto recording = device->record({{"conv", Convolution{.shape = kPlanShape,
                                                                .a = a.data(),
                                                                .b = b.data(),
                                                                .result = result.data(),
                                                                .sums = reinterpret_cast<float*>(sums.data()),
                                                                .any_order = any_order_}}});
    for (int run = 0; run < 3; ++run) recording->run();
    device->synchronize();
    return recording->facts().convolutions.at(0).engine;
  }

  bool any_order_ = false, no_memory_left_ = false;
  std::map<std::int64_t, int> runs_;  // by the engine's number
  std::vector<std::int64_t> wavers_;

 private:
  static void know(const runtime::CudnnKnowledge* knowledge) {
    static const SharedObject library(DTRAIN_CUDNN_STANDIN);
    library.symbol<runtime::Know>(runtime::kKnow)(knowledge);
  }
  void run(const CudnnEngine& engine, const std::vector<void*>& memory, cudaStream_t stream) {
    const int before = runs_[engine.number]++;
    const bool wavers = std::ranges::find(wavers_, engine.number) != wavers_.end();
    const float value = static_cast<float>(engine.number) + (wavers ? static_cast<float>(before) : 0);
    runtime::enqueue(stream, "an engine", [to = static_cast<float*>(memory.at(2)), value] { *to = value; });
  }
  const TemporaryFolder folder_;
  runtime::CudnnKnowledge knowledge_{
      .run = [this](const auto& engine, const auto& memory, auto stream) { run(engine, memory, stream); }};
};

INSTANTIATE_TEST_SUITE_P(All, GpuPlans, testing::every_order(), testing::OrderName());

const CudnnEngine kShipped{.number = 62, .knobs = {{2, 4}, {13, 0}}};
const CudnnEngine kMade{.number = 3, .made_at_run_time = true};

TEST_P(GpuPlans, TakeTheFirstAndNameItWithItsKnobs) {
  EXPECT_EQ(engine_of({kShipped, {.number = 1}}), "62:2=4,13=0");
  EXPECT_EQ(runs_[1], 0);
}

TEST_P(GpuPlans, TakeTheNextWhereOneRefusesToRun) {
  EXPECT_EQ(engine_of({{.number = 5, .refuses = true}, kShipped}), "62:2=4,13=0");
}

TEST_P(GpuPlans, AreNoneWhereAllRefuse) { EXPECT_EQ(engine_of({{.number = 5, .refuses = true}}), ""); }

TEST_P(GpuPlans, RefuseAnEngineOfRunTimeThatGivesOtherBitsAndRememberIt) {
  wavers_ = {3};
  EXPECT_EQ(engine_of({kMade, kShipped}), "62:2=4,13=0");
  EXPECT_EQ(runs_[3], 2) << "the second run differs from the first";
  EXPECT_EQ(engine_of({kMade, kShipped}), "62:2=4,13=0");
  EXPECT_EQ(runs_[3], 2) << "another process reads what was kept";
}

TEST_P(GpuPlans, TakeAnEngineOfRunTimeThatGivesTheSameBitsAndRememberIt) {
  EXPECT_EQ(engine_of({kMade, kShipped}), "3");
  const int first = runs_[3];
  EXPECT_EQ(engine_of({kMade, kShipped}), "3");
  EXPECT_LT(runs_[3] - first, first);
  EXPECT_EQ(runs_[62], 0);
}

TEST_P(GpuPlans, WantNoProofWhereBitsMayDiffer) {
  wavers_ = {3};
  any_order_ = true;
  EXPECT_EQ(engine_of({kMade, kShipped}, {.deterministic = false, .plans = {}}), "3");
}

TEST_P(GpuPlans, TakeTheNextWhereThereIsNoMemoryForAProofAndTryAgainLater) {
  no_memory_left_ = true;
  EXPECT_EQ(engine_of({kMade, kShipped}), "62:2=4,13=0");
  EXPECT_EQ(runs_[3], 0);
  no_memory_left_ = false;
  EXPECT_EQ(engine_of({kMade, kShipped}), "3");
}

TEST_P(GpuPlans, AreTimedWithEachOfTheirSettings) {
  std::vector<CudnnEngine> engines;
  for (std::int64_t setting = 0; setting < 3; ++setting) engines.push_back({.number = 1, .knobs = {{2, setting}}});
  const std::string taken = engine_of(engines, {.plans_to_time = 3, .plans = {}});
  EXPECT_TRUE(taken.starts_with("1:2=")) << taken;
  const int timed = runs_[1];
  EXPECT_GT(timed, 3 * 8) << "each of the three several times";
  EXPECT_EQ(engine_of(engines, {.plans_to_time = 3, .plans = {}}), taken);
  EXPECT_LT(runs_[1] - timed, 8) << "what was measured is kept";
}

}  // namespace
}  // namespace dtrain::backend::cuda
