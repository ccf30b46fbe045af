// What base/accelerator.hpp promises, of a GPU whose streams go on when they like.
#include <dtrain/backend/accelerator.hpp>

#include <thread>

#include "common/replay_accelerator.hpp"
#include "orders.hpp"

namespace dtrain::testing {
namespace {

constexpr std::int64_t kSize = 1000;
constexpr std::size_t kBytes = kSize * sizeof(float);

std::vector<float> numbers(float first) {
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) values[i] = first + 0.37f * static_cast<float>(i);
  return values;
}

class GpuAcceleratorOrder : public InEveryOrder {
 protected:
  const std::unique_ptr<Accelerator> gpu_ = backend::open_accelerator(kGpu);
};

INSTANTIATE_TEST_SUITE_P(All, GpuAcceleratorOrder, every_order(), OrderName());

// Everything that is asked of one, with the answers of downloads on the way.
std::vector<float> all_of_it(Accelerator& gpu) {
  const auto reserve = [&] { return reinterpret_cast<float*>(gpu.allocate(kBytes)); };
  float *const a = reserve(), *const b = reserve(), *const c = reserve();
  auto* const narrow = reinterpret_cast<bfloat16_bits*>(gpu.allocate(kSize * sizeof(bfloat16_bits)));
  std::vector<float> all, part(kSize);
  for (int round = 0; round < 3; ++round) {
    std::vector<float> from = numbers(static_cast<float>(round));
    gpu.upload(a, from.data(), kBytes);
    from = numbers(100);
    gpu.upload(b, from.data(), kBytes);
    from.assign(kSize, 0);
    gpu.add(c, a, b, kSize, false);
    gpu.add(a, a, c, kSize, true);
    gpu.copy(b, a, kSize);
    gpu.clear(b, kSize / 2);
    gpu.wait_for(gpu.mark());
    gpu.narrow(narrow, c, kSize);
    gpu.widen(a, narrow, kSize - 1);
    for (const float* of : {a, b, c}) {
      gpu.download(part.data(), of, kBytes);
      all.insert(all.end(), part.begin(), part.end());
    }
  }
  for (float* const memory : {a, b, c}) gpu.release(reinterpret_cast<std::byte*>(memory));
  gpu.release(reinterpret_cast<std::byte*>(narrow));
  return all;
}

TEST_P(GpuAcceleratorOrder, GivesTheBitsOfAReplay) {
  EXPECT_EQ(all_of_it(*gpu_), all_of_it(*backend::cuda::make_replay_accelerator()));
}

TEST_P(GpuAcceleratorOrder, IsIdleWhenAllIsDoneAndGoesOnAfterItWasNot) {
  auto* const memory = reinterpret_cast<float*>(gpu_->allocate(kBytes));
  gpu_->upload(memory, numbers(1).data(), kBytes);
  for (int round = 0; round < 3; ++round) {
    gpu_->add(memory, memory, memory, kSize, false);
    while (!gpu_->is_idle()) gpu_->add(memory, memory, memory, 0, false);
  }
  std::vector<float> result(kSize), expected = numbers(1);
  gpu_->download(result.data(), memory, kBytes);
  for (float& value : expected) value *= 8;
  EXPECT_EQ(result, expected);
  gpu_->release(reinterpret_cast<std::byte*>(memory));
}

TEST_P(GpuAcceleratorOrder, IsNotIdleBeforeAllIsDone) {
  bool done = false;
  cuda_runtime::enqueue(static_cast<cudaStream_t>(gpu_->stream()), "some work", [&] { done = true; });
  while (!gpu_->is_idle()) continue;
  EXPECT_TRUE(done);
}

TEST_P(GpuAcceleratorOrder, EachCallChoosesItsGpu) {
  const auto elsewhere = [] { EXPECT_EQ(cudaSetDevice(0), cudaSuccess); };
  elsewhere();
  auto* const a = reinterpret_cast<float*>(gpu_->allocate(kBytes));
  auto* const halves = reinterpret_cast<bfloat16_bits*>(gpu_->allocate(kBytes));
  gpu_->upload(a, numbers(1).data(), kBytes);
  elsewhere();
  gpu_->add(a, a, a, kSize, false);
  elsewhere();
  gpu_->narrow(halves, a, kSize);
  elsewhere();
  gpu_->widen(a, halves, kSize);
  for (void* const memory : {static_cast<void*>(a), static_cast<void*>(halves)}) {
    elsewhere();
    gpu_->release(static_cast<std::byte*>(memory));
  }
}

TEST_P(GpuAcceleratorOrder, WorkAfterALookThatFoundItBusyIsStarted) {
  auto* const memory = reinterpret_cast<float*>(gpu_->allocate(kBytes));
  gpu_->upload(memory, numbers(1).data(), kBytes);
  gpu_->add(memory, memory, memory, kSize, false);
  gpu_->is_idle();
  gpu_->add(memory, memory, memory, kSize, false);
  gpu_->release(reinterpret_cast<std::byte*>(memory));
}

TEST_P(GpuAcceleratorOrder, AnyThreadMayGoOn) {
  std::vector<float> here;
  std::thread([&] { here = all_of_it(*gpu_); }).join();
  EXPECT_EQ(here, all_of_it(*gpu_));
}

}  // namespace
}  // namespace dtrain::testing
