// An Accelerator that is this CPU: work is done later, in order, by a thread. Memory is poisoned with NaN.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <dtrain/base/accelerator.hpp>

#include "arithmetic.hpp"
#include "helpers/host_stream.hpp"

namespace dtrain::comm {

class HostAccelerator final : public Accelerator {
 public:
  // Without a stream of its own work is done at once, and libraries get none.
  explicit HostAccelerator(bool has_stream = true) {
    if (has_stream) stream_.emplace();
  }
  std::byte* allocate(std::uint64_t bytes) override {
    constexpr std::uint64_t step = 256;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(step, (bytes + step - 1) / step * step));
    std::memset(memory, 0xff, bytes);
    allocated_ += bytes;
    return memory;
  }
  void release(std::byte* memory) noexcept override {
    if (stream_) stream_->wait();
    std::free(memory);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    const auto* const begin = static_cast<const std::byte*>(from);
    if (bytes == 0) return;
    give([to, copy = std::vector<std::byte>(begin, begin + bytes)] { std::memcpy(to, copy.data(), copy.size()); });
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (stream_) stream_->wait();
    if (bytes > 0) std::memcpy(to, from, bytes);  // of nothing, no addresses are known
  }
  void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) override {
    give([=] { comm::add(out, left, right, size, rounded); });
  }
  void copy(float* to, const float* from, std::int64_t size) override {
    give([=] { std::memcpy(to, from, static_cast<std::size_t>(size) * sizeof(float)); });
  }
  void clear(float* to, std::int64_t size) override {
    give([=] { std::fill_n(to, size, 0.0f); });
  }
  void narrow(bfloat16_bits* to, const float* from, std::int64_t size) override {
    give([=] { comm::narrow(to, from, size); });
  }
  void widen(float* to, const bfloat16_bits* from, std::int64_t size) override {
    give([=] { comm::widen(to, from, size); });
  }
  // There is but one queue: what is behind a mark is behind the work before it.
  void wait_for(DeviceMark) override {}
  DeviceMark mark() override { return {}; }
  void* stream() override { return stream_ ? &*stream_ : nullptr; }
  bool is_idle() override { return !stream_ || stream_->is_idle(); }
  // Marks of other queues are the tests' own.
  bool is_reached(DeviceMark mark) override {
    return !mark.event || static_cast<const std::atomic<bool>*>(mark.event)->load();
  }

  std::uint64_t allocated() const { return allocated_; }  // in all

 private:
  void give(std::function<void()> work) {
    if (stream_) return stream_->enqueue(std::move(work));
    work();
  }
  std::optional<testing::HostStream> stream_;
  std::uint64_t allocated_ = 0;
};

}  // namespace dtrain::comm
