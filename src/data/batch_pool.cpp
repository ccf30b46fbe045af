#include "batch_pool.hpp"

#include <new>

namespace dtrain::data {
namespace {

constexpr std::size_t kAlignment = 64;

void make_room(BatchBuffer& buffer, std::size_t samples, std::size_t sample_size) {
  const std::size_t floats = samples * sample_size;
  if (buffer.room < floats) {
    const std::size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    buffer.images.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    buffer.room = buffer.images ? floats : 0;
    if (!buffer.images) throw std::bad_alloc();
  }
  buffer.labels.resize(samples);
  buffer.sample_ids.resize(samples);
}

}  // namespace

std::shared_ptr<BatchBuffer> BatchPool::take(std::size_t samples, std::size_t sample_size) {
  std::unique_ptr<BatchBuffer> buffer;
  {
    const std::lock_guard lock(shelf_->mutex);
    if (!shelf_->free.empty()) {
      buffer = std::move(shelf_->free.back());
      shelf_->free.pop_back();
    }
  }
  if (!buffer) buffer = std::make_unique<BatchBuffer>();
  make_room(*buffer, samples, sample_size);
  return {buffer.release(), [shelf = shelf_](BatchBuffer* done) {
            const std::lock_guard lock(shelf->mutex);
            shelf->free.emplace_back(done);
          }};
}

}  // namespace dtrain::data
