#include "replay_accelerator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/reduction.hpp"

namespace dtrain::backend::cuda {
namespace {

// From the last thread to the first: no thread may count on an earlier one.
template <typename Kernel>
void replay(const Kernel& kernel) {
  for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
}

class ReplayAccelerator final : public Accelerator {
 public:
  explicit ReplayAccelerator(AcceleratorWatch watch) : watch_(std::move(watch)) {}
  std::byte* allocate(std::uint64_t bytes) override {
    constexpr std::uint64_t step = 256;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(step, (bytes + step - 1) / step * step));
    std::memset(memory, 0xff, bytes);  // a NaN in every type
    return memory;
  }
  void release(std::byte* memory) noexcept override { std::free(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (watch_.on_host_copy) watch_.on_host_copy();
    std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override { upload(to, from, bytes); }
  void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) override {
    if (watch_.on_add) watch_.on_add();
    replay(SumOfTwo{out, left, right, size, rounded});
  }
  void copy(float* to, const float* from, std::int64_t size) override {
    std::memcpy(to, from, static_cast<std::size_t>(size) * sizeof(float));
  }
  void clear(float* to, std::int64_t size) override { std::fill_n(to, size, 0.0f); }
  void narrow(bfloat16_bits* to, const float* from, std::int64_t size) override {
    replay(NarrowFloats{to, from, size});
  }
  void widen(float* to, const bfloat16_bits* from, std::int64_t size) override { replay(WidenFloats{to, from, size}); }
  void wait_for(DeviceMark) override {}
  DeviceMark mark() override { return {}; }
  void* stream() override { return nullptr; }
  bool is_idle() override { return true; }
  bool is_reached(DeviceMark) override { return true; }

 private:
  const AcceleratorWatch watch_;
};

}  // namespace

std::unique_ptr<Accelerator> make_replay_accelerator(AcceleratorWatch watch) {
  return std::make_unique<ReplayAccelerator>(std::move(watch));
}

}  // namespace dtrain::backend::cuda
