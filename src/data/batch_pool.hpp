// Buffers of batches, used again and again: memory that stays warm, and no allocation in a steady epoch.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace dtrain::data {

struct BatchBuffer {
  struct Free {
    void operator()(float* images) const { std::free(images); }
  };
  std::unique_ptr<float[], Free> images;  // 64-byte aligned
  std::size_t room = 0;                   // floats
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> sample_ids;
};

// Any thread may let go of a buffer, also after the pool is gone.
class BatchPool {
 public:
  // A buffer for `samples` of `sample_size` floats; it comes back to the pool when the last owner lets go of it.
  std::shared_ptr<BatchBuffer> take(std::size_t samples, std::size_t sample_size);

 private:
  struct Shelf {
    std::mutex mutex;
    std::vector<std::unique_ptr<BatchBuffer>> free;  // guarded by mutex
  };
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace dtrain::data
