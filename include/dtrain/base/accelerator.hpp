// A GPU as those see it who know nothing of GPUs: memory, copies and additions of float32, in the order in which they
// were asked for, while the caller goes on. One thread at a time. Throws Error naming the work when the GPU fails.
#pragma once

#include <cstddef>
#include <cstdint>

#include <dtrain/base/bfloat16.hpp>

namespace dtrain {

// A point in a queue of a GPU's work, for other queues of the same GPU to wait for (cudaEvent_t). Null: it is reached.
struct DeviceMark {
  void* event = nullptr;
};

// Elements [first, first + size) of a row of floats.
struct FloatRange {
  std::int64_t first = 0, size = 0;
  friend bool operator==(const FloatRange&, const FloatRange&) = default;
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // Aligned to 256 bytes, any content. release() waits for the work before it.
  virtual std::byte* allocate(std::uint64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;

  // Between the host and memory from allocate(). `from` may change after upload(); download() waits for the work.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;

  // out[i] = left[i] + right[i]; then, if `rounded`, to the nearest bfloat16. `out` may be `left` or `right`.
  virtual void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) = 0;
  virtual void copy(float* to, const float* from, std::int64_t size) = 0;
  virtual void clear(float* to, std::int64_t size) = 0;  // to zeros
  virtual void narrow(bfloat16_bits* to, const float* from, std::int64_t size) = 0;
  virtual void widen(float* to, const bfloat16_bits* from, std::int64_t size) = 0;

  // Work that is asked for from now on begins when `mark`, of another queue, is reached.
  virtual void wait_for(DeviceMark mark) = 0;
  // Behind the work that was asked for so far. To be waited for before the next mark is made.
  virtual DeviceMark mark() = 0;

  // The queue of its work, as libraries of its maker call it (cudaStream_t); makes the GPU the calling thread's.
  virtual void* stream() = 0;
  // All work that was asked for is done.
  virtual bool is_idle() = 0;
  // All work before `mark`, of another queue, is done.
  virtual bool is_reached(DeviceMark mark) = 0;
};

}  // namespace dtrain
