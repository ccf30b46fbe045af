#include "replay_accelerator.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bodies/reduction.hpp"

namespace dtrain::backend::cuda {
namespace {

// From the last thread to the first: no thread may count on an earlier one.
template <typename Body>
void replay(const Body& body) {
  for (std::int64_t i = body.threads() - 1; i >= 0; --i) body(i);
}

class ReplayAccelerator final : public Accelerator {
 public:
  std::byte* allocate(std::uint64_t bytes) override {
    constexpr std::uint64_t step = 256;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(step, (bytes + step - 1) / step * step));
    std::memset(memory, 0xff, bytes);  // a NaN in every type
    return memory;
  }
  void release(std::byte* memory) noexcept override { std::free(memory); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) override {
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
};

}  // namespace

std::unique_ptr<Accelerator> make_replay_accelerator() { return std::make_unique<ReplayAccelerator>(); }

}  // namespace dtrain::backend::cuda
