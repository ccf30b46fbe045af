// Buffers of batches, used again and again: memory that stays warm, and no allocation in a steady epoch.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::data {

// One piece of memory with all that a batch holds; each part begins at a multiple of 64 bytes.
struct BatchBuffer {
  std::shared_ptr<std::byte> memory;
  std::size_t room = 0;  // bytes
  std::byte* values = nullptr;
  nn::PixelPlace* places = nullptr;
  std::int32_t* labels = nullptr;
  std::uint32_t* sample_ids = nullptr;
  std::vector<nn::PictureObjects> objects;  // of a detector's batch, one for each sample
};

// Removes the samples with the numbers `out` from a batch of `samples`, moves the others together and returns how many
// remain.
int leave_out(BatchBuffer& buffer, int samples, std::size_t sample_bytes, const std::set<int>& out);

// Any thread may let go of a buffer, also after the pool is gone.
class BatchPool {
 public:
  // An empty function: ordinary memory.
  explicit BatchPool(BatchMemory memory) : memory_(std::move(memory)) {}
  // A buffer for `samples` with so many bytes of values each; it comes back to the pool when the last owner lets go of
  // it.
  std::shared_ptr<BatchBuffer> take(std::size_t samples, std::size_t sample_bytes);

 private:
  void make_room(BatchBuffer& buffer, std::size_t samples, std::size_t sample_bytes) const;

  struct Shelf {
    Mutex mutex;
    std::vector<std::unique_ptr<BatchBuffer>> free DTRAIN_GUARDED_BY(mutex);
  };
  BatchMemory memory_;
  std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace dtrain::data
