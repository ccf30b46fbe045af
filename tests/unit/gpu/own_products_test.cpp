// When dtrain's own products of matrices compute a convolution beside cuDNN, and what happens where they fail.
#include "helpers/cuda_runtime/own_products.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "gpu/gpu_device.hpp"
#include "helpers/cuda_runtime/cudnn.hpp"
#include "libraries/shared_object.hpp"
#include "orders.hpp"

namespace dtrain::backend::cuda {
namespace {

namespace runtime = testing::cuda_runtime;
using runtime::CudnnEngine;

constexpr ConvolutionShape kShape{2, 16, 4, 4, 8, 4, 4, 1, 1, 1, 1, 0, 0, 1};
const std::string kOurs = "wgmma:128x64x64";

class GpuOwnProducts : public testing::InEveryOrder {
 protected:
  GpuOwnProducts() {
    runtime::own_products() = {.there = true, .start = [this](const Convolution& work, cudaStream_t stream) {
                                 return start_own(work, stream);
                               }};
    know(&knowledge_);
  }
  ~GpuOwnProducts() override {
    know(nullptr);
    runtime::own_products() = {};
  }

  // How a process that begins now computes the work.
  ConvolutionFacts facts_of(const CudaOptions& options) {
    const std::shared_ptr<Device> device = open(options);
    const DeviceMemory a(*device, 1 << 12), b(*device, 1 << 12), result(*device, 1 << 12), sums(*device, 1 << 16);
    Convolution work{.direction = direction_,
                     .shape = kShape,
                     .dtype = dtype_,
                     .a = a.data(),
                     .b = b.data(),
                     .result = result.data(),
                     .sums = reinterpret_cast<float*>(sums.data())};
    const std::vector<std::byte> zeros(1 << 12);
    device->upload(a.data(), zeros.data(), zeros.size());
    device->upload(b.data(), zeros.data(), zeros.size());
    if (no_memory_left_) runtime::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
    const auto recording = device->record({{"conv", work}});
    for (int run = 0; run < 3; ++run) recording->run();
    device->synchronize();
    const RecordingFacts facts = recording->facts();
    EXPECT_EQ(warnings_of(facts).empty(), !facts.convolutions.at(0).own_failed);
    return facts.convolutions.at(0);
  }
  std::shared_ptr<Device> open(const CudaOptions& options) {
    return open_gpu(kGpu, DTRAIN_CUDNN_STANDIN, options, PlanStore(folder_.path(), "a GPU"));
  }

  Direction direction_ = Direction::forward;
  DType dtype_ = DType::bfloat16;
  enum class Fault { none, wrong, unsteady, one_value, refuses, spoils_moments, ends, no_memory } fault_ = Fault::none;
  bool no_memory_left_ = false;
  int own_runs_ = 0;

  CudaOptions first() const { return {.own_products = OwnProducts::first, .plans = {}}; }

 private:
  static void know(const runtime::CudnnKnowledge* knowledge) {
    static const SharedObject library(DTRAIN_CUDNN_STANDIN);
    library.symbol<runtime::Know>(runtime::kKnow)(knowledge);
  }
  static void compute(const Convolution& work) {
    for (const Call& call : definition_of({"conv", work})) {
      call.work.visit([]<typename W>(const W& kernel) {
        if constexpr (IsKernel<W>) {
          for (std::int64_t i = 0; i < kernel.threads(); ++i) kernel(i);
        }
      });
    }
  }
  cudaError_t start_own(const Convolution& work, cudaStream_t stream) {
    if (fault_ == Fault::refuses) return cudaErrorNotSupported;
    const int run = own_runs_++;
    if (fault_ == Fault::ends) return cudaErrorLaunchFailure;
    if (fault_ == Fault::no_memory) return cudaErrorMemoryAllocation;
    return runtime::enqueue(stream, "an own product", [work, run, fault = fault_] {
      compute(work);
      auto* const values = static_cast<Bf16*>(work.result);
      const std::int64_t size = work.direction == Direction::forward         ? kShape.outputs()
                                : work.direction == Direction::backward_data ? kShape.inputs()
                                                                             : kShape.weights();
      if (fault == Fault::wrong) std::reverse(values, values + size);
      if (fault == Fault::one_value) narrow(100, values[size - 1]);
      if (fault == Fault::unsteady) values[0].bits = static_cast<bfloat16_bits>(values[0].bits ^ (run & 1));
      if (fault == Fault::spoils_moments && work.moments) work.moments[3] += 1;
    });
  }
  // cuDNN's engine computes the definition, too.
  void run_cudnn(const std::vector<void*>& memory, cudaStream_t stream) const {
    Convolution work{.direction = direction_, .shape = kShape, .dtype = dtype_};
    switch (direction_) {
      case Direction::forward:
        work.a = memory.at(0), work.b = memory.at(1), work.result = memory.at(2);
        break;
      case Direction::backward_data:
        work.result = memory.at(0), work.b = memory.at(1), work.a = memory.at(2);
        break;
      case Direction::backward_weights:
        work.a = memory.at(0), work.result = memory.at(1), work.b = memory.at(2);
        break;
    }
    runtime::enqueue(stream, "an engine", [work]() mutable {
      std::vector<float> sums(1 << 14);
      work.sums = sums.data();
      compute(work);
    });
  }

  const TemporaryFolder folder_;
  runtime::CudnnKnowledge knowledge_{
      .engines = {{.number = 62}},
      .run = [this](const CudnnEngine&, const auto& memory, auto stream) { run_cudnn(memory, stream); }};
};

INSTANTIATE_TEST_SUITE_P(All, GpuOwnProducts, testing::every_order(), testing::OrderName());

TEST_P(GpuOwnProducts, AreNotTakenUnasked) {
  EXPECT_EQ(facts_of({}).engine, "62");
  EXPECT_EQ(facts_of({.own_products = OwnProducts::never, .plans = {}}).engine, "62");
  EXPECT_EQ(own_runs_, 0);
}

TEST_P(GpuOwnProducts, ComputeEachDirectionAfterTheirProof) {
  for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
    direction_ = direction;
    const ConvolutionFacts facts = facts_of(first());
    EXPECT_EQ(facts.engine, kOurs) << direction_name(direction);
    EXPECT_EQ(facts.own_refused, "");
    const int runs = own_runs_;
    facts_of(first());
    EXPECT_EQ(own_runs_ - runs, 2) << "the proof is kept: a run and a capture";
  }
}

TEST_P(GpuOwnProducts, LeaveToCudnnWhatTheyComputeWrongOrUnsteadily) {
  for (const Fault fault : {Fault::wrong, Fault::unsteady, Fault::one_value, Fault::refuses}) {
    fault_ = fault;
    dtype_ = fault == Fault::wrong ? DType::float16 : DType::bfloat16;
    direction_ = fault == Fault::one_value ? Direction::backward_data
                 : fault == Fault::refuses ? Direction::backward_weights
                                           : Direction::forward;
    const ConvolutionFacts facts = facts_of(first());
    EXPECT_EQ(facts.engine, "62");
    EXPECT_TRUE(facts.own_failed);
    EXPECT_EQ(facts.own_refused, kOurs + " did not prove that it computes this on this kind of GPU");
    const int runs = own_runs_;
    EXPECT_EQ(facts_of(first()).engine, "62");
    EXPECT_EQ(own_runs_, runs) << "it is not tried again";
  }
}

TEST_P(GpuOwnProducts, AreTriedAgainWhereThereWasNoMemoryForTheProof) {
  no_memory_left_ = true;
  const ConvolutionFacts facts = facts_of(first());
  EXPECT_EQ(facts.engine, "62");
  EXPECT_TRUE(facts.own_failed);
  EXPECT_EQ(own_runs_, 0);
  no_memory_left_ = false;
  EXPECT_EQ(facts_of(first()).engine, kOurs);
}

// The first launch of a kernel loads it, which needs memory.
TEST_P(GpuOwnProducts, AreTriedAgainWhereThereWasNoMemoryToLaunchThemFor) {
  fault_ = Fault::no_memory;
  const ConvolutionFacts facts = facts_of(first());
  EXPECT_EQ(facts.engine, "62");
  EXPECT_TRUE(facts.own_failed);
  fault_ = Fault::none;
  EXPECT_EQ(facts_of(first()).engine, kOurs);
}

// A wait in the kernel that does not end becomes an error of the GPU, and the end of the process.
TEST_P(GpuOwnProducts, AreNotTriedAgainWhereTheyEndedTheProcess) {
  fault_ = Fault::ends;
  EXPECT_THROW(facts_of(first()), Error);
  fault_ = Fault::none;
  const int runs = own_runs_;
  EXPECT_EQ(facts_of(first()).engine, "62");
  EXPECT_EQ(own_runs_, runs);
}

TEST_P(GpuOwnProducts, AreNotThereOnOtherGpus) {
  runtime::own_products().there = false;
  EXPECT_EQ(facts_of(first()).engine, "62");
  EXPECT_EQ(own_runs_, 0);
}

TEST_P(GpuOwnProducts, ThatWereTheFastestAreTakenByLaterProcesses) {
  const std::string taken = facts_of({.plans_to_time = 1, .plans = {}}).engine;
  EXPECT_GT(own_runs_, 8) << "it was timed";
  const int timed = own_runs_;
  EXPECT_EQ(facts_of({}).engine, taken);
  EXPECT_EQ(own_runs_ > timed, taken == kOurs);
  EXPECT_EQ(facts_of({.own_products = OwnProducts::never, .plans = {}}).engine, "62");
}

TEST_P(GpuOwnProducts, LeaveMomentsWhereTheirSumsAreProven) {
  float moments[1];
  Convolution work{.direction = Direction::forward, .shape = kShape, .dtype = DType::bfloat16, .moments = moments};
  EXPECT_FALSE(open({})->fuses(work)) << "cuDNN may not";
  EXPECT_TRUE(open(first())->fuses(work));
  EXPECT_FALSE(open({.plans_to_time = 1, .plans = {}})->fuses(work)) << "the convolution alone was not the fastest";
}

TEST_P(GpuOwnProducts, LeaveNoMomentsWhereTheirSumsAreWrong) {
  fault_ = Fault::spoils_moments;
  float moments[1];
  EXPECT_FALSE(open(first())->fuses(
      {.direction = Direction::forward, .shape = kShape, .dtype = DType::bfloat16, .moments = moments}));
  EXPECT_EQ(facts_of(first()).engine, kOurs) << "alone, it is right";
}

}  // namespace
}  // namespace dtrain::backend::cuda
