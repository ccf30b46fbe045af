// Takes contributions where they were computed, and adds them up on another queue of the same GPU.
#pragma once

#include <utility>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::testing {

// What a reduction without peers does: the leaves are added up part by part, from left to right.
class AdderUp final : public backend::DeviceSink {
 public:
  AdderUp(Accelerator& gpu, std::vector<FloatRange> parts, std::int64_t size)
      : gpu_(gpu),
        parts_(std::move(parts)),
        sum_(reinterpret_cast<float*>(gpu.allocate(static_cast<std::uint64_t>(size) * sizeof(float)))) {}
  ~AdderUp() override { gpu_.release(reinterpret_cast<std::byte*>(sum_)); }

  void begin(DeviceMark mark) override { gpu_.wait_for(mark); }
  void take(const backend::ShardRange& shard, int part, const float* values, DeviceMark ready) override {
    const FloatRange& range = parts_[static_cast<std::size_t>(part)];
    gpu_.wait_for(ready);
    if (shard.index == 0) return gpu_.copy(sum_ + range.first, values, range.size);
    gpu_.add(sum_ + range.first, sum_ + range.first, values, range.size, false);
  }
  DeviceMark taken() override { return gpu_.mark(); }
  float* finish() {
    while (!gpu_.is_idle()) continue;
    return sum_;
  }

 private:
  Accelerator& gpu_;
  const std::vector<FloatRange> parts_;
  float* const sum_;
};

}  // namespace dtrain::testing
