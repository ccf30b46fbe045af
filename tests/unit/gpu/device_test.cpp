// What device.hpp promises of a GPU, on a CUDA runtime that does as late or as early as it may whatever nobody ordered.
#include <dtrain/base/error.hpp>

#include <numeric>
#include <thread>

#include <dtrain/nn/networks.hpp>

#include "executable.hpp"
#include "gpu/gpu_device.hpp"
#include "orders.hpp"

namespace dtrain::backend::cuda {
namespace {

namespace runtime = testing::cuda_runtime;

constexpr std::int64_t kSize = 300;
constexpr std::size_t kBytes = kSize * sizeof(float);

std::vector<float> numbers(float first) {
  std::vector<float> values(kSize);
  std::iota(values.begin(), values.end(), first);
  return values;
}

class GpuOrder : public testing::InEveryOrder {
 protected:
  float* floats() {
    memory_.push_back(std::make_unique<DeviceMemory>(*device_, kBytes));
    return reinterpret_cast<float*>(memory_.back()->data());
  }
  std::shared_ptr<float> host_floats() {
    return {reinterpret_cast<float*>(device_->allocate_host(kBytes)),
            [device = device_](float* memory) { device->release_host(reinterpret_cast<std::byte*>(memory)); }};
  }
  std::vector<float> read(const float* from) {
    std::vector<float> values(kSize);
    device_->download(values.data(), from, kBytes);
    return values;
  }
  std::unique_ptr<Recording> copying(float* from, float* to) {
    return device_->record({{"a copy", Copy{from, to, kSize}}});
  }
  const std::shared_ptr<Device> device_ = open_gpu(kGpu, DTRAIN_CUDNN_STANDIN, {}, {});
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
};

INSTANTIATE_TEST_SUITE_P(All, GpuOrder, testing::every_order(), testing::OrderName());

TEST_P(GpuOrder, DownloadsWhatTheWorkBeforeLeft) {
  float *a = floats(), *b = floats();
  device_->upload(a, numbers(3).data(), kBytes);
  copying(a, b)->run();
  EXPECT_EQ(read(b), numbers(3));
}

TEST_P(GpuOrder, UploadsWhatWasThereWhenItWasAsked) {
  float* const a = floats();
  std::vector<float> values = numbers(3);
  device_->upload(a, values.data(), kBytes);
  values = numbers(7);
  EXPECT_EQ(read(a), numbers(3));
}

TEST_P(GpuOrder, BeginsASideCopyBehindTheWorkThatReadsWhereItGoes) {
  float *slot = floats(), *result = floats();
  const auto host = host_floats();
  std::ranges::copy(numbers(50), host.get());
  device_->upload(slot, numbers(1).data(), kBytes);
  const auto reading = copying(slot, result);
  const auto side = device_->side_copy();
  reading->run();
  side->begin({{slot, host.get(), kBytes}});
  EXPECT_EQ(read(result), numbers(1));
  side->join();
  EXPECT_EQ(read(slot), numbers(50));
}

TEST_P(GpuOrder, WorkBehindAJoinWaitsForTheSideCopy) {
  float *slot = floats(), *result = floats();
  const auto host = host_floats();
  std::ranges::copy(numbers(50), host.get());
  const auto side = device_->side_copy();
  side->begin({{slot, host.get(), kBytes / 2}, {slot + kSize / 2, host.get() + kSize / 2, kBytes / 2}});
  side->join();
  copying(slot, result)->run();
  EXPECT_EQ(read(result), numbers(50));
}

TEST_P(GpuOrder, TwoSideCopiesAreJoinedEachForItself) {
  float *a = floats(), *b = floats(), *result = floats();
  const auto host_a = host_floats(), host_b = host_floats();
  const auto side_a = device_->side_copy(), side_b = device_->side_copy();
  for (int step = 0; step < 6; ++step) {
    const auto first = static_cast<float>(step);
    std::ranges::copy(numbers(first), (step % 2 ? host_b : host_a).get());
    const auto& side = step % 2 ? side_b : side_a;
    side->begin({{step % 2 ? b : a, (step % 2 ? host_b : host_a).get(), kBytes}});
    side->join();
    copying(step % 2 ? b : a, result)->run();
    EXPECT_EQ(read(result), numbers(first)) << step;
  }
}

// Launches first, then a capture, then one launch of a graph: between them, what the memory holds changes.
TEST_P(GpuOrder, ARecordingIsDoneAgainOnWhatTheMemoryHoldsThen) {
  float *a = floats(), *b = floats(), *c = floats();
  const auto twice = device_->record({{"a copy", Copy{a, b, kSize}}, {"a copy", Copy{b, c, kSize}}});
  for (int run = 0; run < 5; ++run) {
    device_->upload(a, numbers(static_cast<float>(run)).data(), kBytes);
    twice->run();
    EXPECT_EQ(read(c), numbers(static_cast<float>(run))) << run;
  }
  EXPECT_EQ(runtime::graph_launches(), 4);
}

TEST_P(GpuOrder, GoesOnAsItIsWhereNothingCanBeRecorded) {
  float *a = floats(), *b = floats();
  for (const char* refused : {"cudaStreamBeginCapture", "cudaGraphInstantiate", "launch"}) {
    const auto copy = copying(a, b);
    for (int run = 0; run < 4; ++run) {
      device_->upload(a, numbers(static_cast<float>(run)).data(), kBytes);
      if (run == 1) runtime::fail_next(refused, cudaErrorStreamCaptureUnsupported);
      copy->run();
      EXPECT_EQ(read(b), numbers(static_cast<float>(run))) << refused << run;
    }
  }
  EXPECT_EQ(runtime::graph_launches(), 0);
}

TEST_P(GpuOrder, SaysWhetherWorkIsRecordedAndWhyNot) {
  float *a = floats(), *b = floats();
  const auto recorded = copying(a, b), refused = copying(a, b);
  for (const auto& copy : {std::cref(recorded), std::cref(refused)}) {
    copy.get()->run();
    EXPECT_FALSE(copy.get()->facts().settled);
    if (copy.get() == refused) runtime::fail_next("cudaGraphInstantiate", cudaErrorStreamCaptureUnsupported);
    copy.get()->run();
    EXPECT_TRUE(copy.get()->facts().settled);
  }
  EXPECT_TRUE(recorded->facts().one_launch);
  EXPECT_EQ(recorded->facts().refusal, "");
  EXPECT_FALSE(refused->facts().one_launch);
  EXPECT_NE(refused->facts().refusal, "");
}

// The clock starts when plans are settled and the graph is made and has run once.
TEST_P(GpuOrder, MeasuresNothingThatIsDoneOnlyAtFirst) {
  constexpr int kTimes = 20;
  float *a = floats(), *b = floats();
  device_->upload(a, numbers(3).data(), kBytes);
  int made = 0, launched = 0;
  runtime::before_next("cudaEventRecord", [&] {
    made = runtime::calls("cudaGraphInstantiate");
    launched = runtime::graph_launches();
  });
  const double seconds = device_->seconds_of({{"a copy", Copy{a, b, kSize}}}, kTimes);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(launched, 1);
  EXPECT_EQ(runtime::calls("cudaGraphInstantiate"), 1);
  EXPECT_EQ(runtime::graph_launches(), 2);
  EXPECT_NEAR(seconds, 1e-3 / kTimes, 1e-9) << "a millisecond passes between two events of the stand-in";
  EXPECT_EQ(read(b), numbers(3));
}

// A loader's thread does so, at any time.
TEST_P(GpuOrder, RecordsWhileAnotherThreadTakesAndReleasesPageLockedMemory) {
  float *a = floats(), *b = floats();
  const auto copy = copying(a, b);
  auto host = host_floats();
  runtime::before_next("cudaStreamEndCapture", [&] {
    std::thread([&] {
      host.reset();
      host_floats();
    }).join();
  });
  for (int run = 0; run < 3; ++run) {
    device_->upload(a, numbers(static_cast<float>(run)).data(), kBytes);
    copy->run();
    EXPECT_EQ(read(b), numbers(static_cast<float>(run))) << run;
  }
  EXPECT_EQ(runtime::graph_launches(), 2);
}

TEST_P(GpuOrder, ReleasesMemoryBehindTheWorkOnIt) {
  float *a = floats(), *b = floats();
  device_->upload(a, numbers(1).data(), kBytes);
  copying(a, b)->run();
  memory_.clear();
}

TEST_P(GpuOrder, ReleasesMemoryBehindTheSideCopiesToIt) {
  float *a = floats(), *b = floats();
  const auto host = host_floats();
  std::ranges::copy(numbers(50), host.get());
  const auto side = device_->side_copy();
  device_->upload(a, numbers(1).data(), kBytes);
  copying(a, b)->run();
  side->begin({{b, host.get(), kBytes}});
  memory_.clear();
}

TEST_P(GpuOrder, ReleasesPageLockedMemoryBehindTheCopiesFromIt) {
  float* const a = floats();
  const auto side = device_->side_copy();
  auto host = host_floats();
  std::ranges::copy(numbers(50), host.get());
  side->begin({{a, host.get(), kBytes}});
  std::thread([&] { host.reset(); }).join();
  side->join();
  EXPECT_EQ(read(a), numbers(50));
}

TEST_P(GpuOrder, AnyThreadMayGoOn) {
  float *a = floats(), *b = floats();
  const auto copy = copying(a, b);
  for (int run = 0; run < 3; ++run) {
    std::thread([&] {
      device_->upload(a, numbers(static_cast<float>(run)).data(), kBytes);
      copy->run();
      const DeviceMemory more(*device_, kBytes);
      const auto side = device_->side_copy();
      EXPECT_EQ(read(b), numbers(static_cast<float>(run)));
    }).join();
  }
}

TEST_P(GpuOrder, EachCallChoosesItsGpu) {
  const auto elsewhere = [] { EXPECT_EQ(cudaSetDevice(0), cudaSuccess); };
  elsewhere();
  float *a = floats(), *b = floats();
  elsewhere();
  EXPECT_LT(device_->free_bytes(), runtime::Settings{}.memory);
  const auto host = host_floats();
  std::ranges::copy(numbers(3), host.get());
  elsewhere();
  const auto side = device_->side_copy();
  elsewhere();
  side->begin({{a, host.get(), kBytes}});
  elsewhere();
  side->join();
  const auto copy = copying(a, b);
  for (int run = 0; run < 3; ++run) {
    elsewhere();
    copy->run();
    elsewhere();
    EXPECT_EQ(read(b), numbers(3)) << run;
  }
}

TEST_P(GpuOrder, SaysThatThereIsNoMemoryLeftAndGoesOn) {
  EXPECT_THROW(device_->allocate(std::uint64_t{1} << 40), Error);
  float *a = floats(), *b = floats();
  device_->upload(a, numbers(3).data(), kBytes);
  copying(a, b)->run();
  EXPECT_EQ(read(b), numbers(3));
}

template <typename Do>
void expect_error(Do work, const std::string& what, const std::string& hint) {
  try {
    work();
    ADD_FAILURE() << "nothing was said";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find(hint), std::string::npos) << error.hint();
  }
}

TEST_P(GpuOrder, TellsMemoryThatIsUsedUpFromAGpuThatFails) {
  float *a = floats(), *b = floats();
  runtime::fail_next("launch", cudaErrorMemoryAllocation);
  expect_error([&] { copying(a, b)->run(); }, "no memory left, noticed at a copy", "batch-size");
  runtime::fail_next("launch", cudaErrorLaunchFailure);
  expect_error([&] { copying(a, b)->run(); }, "the GPU failed, noticed at a copy", "nvidia-smi");
  runtime::fail_next("cudaHostAlloc", cudaErrorMemoryAllocation);
  expect_error([&] { host_floats(); }, "this machine has no", "batch-size");
}

// What is loaded at the first launch must find room, however many samples are computed.
TEST(GpuMemory, ExecutablesLeaveRoomForLibraries) {
  constexpr int kMost = 1 << 20;
  const std::shared_ptr<Device> device = open_gpu(1, DTRAIN_CUDNN_STANDIN, {}, {});
  std::size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  const std::uint64_t room = bytes_for_libraries(total);
  EXPECT_GT(room, 0u);
  EXPECT_EQ(device->free_bytes(), free - room);

  const nn::Graph graph = nn::build_network({.name = "mlp", .image = {1, 8, 8}});
  const Model model(graph, DType::float32, 5);
  const Programs programs{lower_training(model), lower_evaluation(model)};
  CompileOptions options{.optimizer = nn::OptimizerKind::nag};
  const auto most_in = [&](std::uint64_t bytes) {
    return largest_fitting(model, programs, kMost, needs_of_step(model, options), bytes);
  };
  options.max_samples = most_in(free);
  EXPECT_THROW(CudaExecutable(device, graph, options), UsageError);
  options.max_samples = most_in(free - room);
  ASSERT_GT(options.max_samples, 0);
  const CudaExecutable executable(device, graph, options);
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_GE(free, room);
}

TEST_P(GpuOrder, WorkAfterAFailureIsNotTakenForIt) {
  float *a = floats(), *b = floats();
  device_->upload(a, numbers(3).data(), kBytes);
  runtime::fail_next("cudaHostAlloc", cudaErrorMemoryAllocation);
  EXPECT_THROW(host_floats(), Error);
  copying(a, b)->run();
  EXPECT_EQ(read(b), numbers(3));
}

}  // namespace
}  // namespace dtrain::backend::cuda
