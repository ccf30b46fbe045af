#include "batch_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dtrain::data {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::shared_ptr<std::byte> ordinary_memory(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
  if (!memory) throw std::bad_alloc();
  return {memory, [](std::byte* done) { std::free(done); }};
}

}  // namespace

std::uint64_t buffer_bytes(const LoaderOptions& options, int samples) {
  std::int64_t floats = options.in_groups() ? 0 : options.shape.size();
  for (const ScaledSize& group : options.in_groups() ? options.detection->groups : std::vector<ScaledSize>()) {
    floats = std::max(floats, nn::Shape{options.shape.c, group.height, group.width}.size());
  }
  const std::uint64_t sample = static_cast<std::uint64_t>(floats) * sizeof(float) + sizeof(nn::PixelPlace) +
                               sizeof(std::int32_t) + sizeof(std::uint32_t);
  return sample * static_cast<std::uint64_t>(samples) * (static_cast<std::uint64_t>(options.queue_batches) + 1);
}

std::vector<float> images_of(const Batch& batch, const nn::Shape& shape) {
  const auto size = static_cast<std::size_t>(batch.n * shape.size());
  if (batch.images) return {batch.images, batch.images + size};
  std::vector<float> images;
  images.reserve(size);
  for (int i = 0; i < batch.n; ++i) {
    for (int c = 0; c < shape.c; ++c) {
      for (int y = 0; y < shape.h; ++y) {
        for (int x = 0; x < shape.w; ++x) {
          images.push_back(nn::pixel_value(batch.pixels, i, shape.c, shape.w, y, x, c));
        }
      }
    }
  }
  return images;
}

int leave_out(BatchBuffer& buffer, int samples, std::size_t sample_bytes, const std::set<int>& out) {
  std::size_t to = 0;
  for (int sample = 0; sample < samples; ++sample) {
    if (out.contains(sample)) continue;
    const auto from = static_cast<std::size_t>(sample);
    const auto move = [&](auto* values, std::size_t count) {
      if (to != from) std::memcpy(values + to * count, values + from * count, count * sizeof *values);
    };
    move(buffer.values, sample_bytes);
    move(buffer.places, 1);
    move(buffer.labels, 1);
    move(buffer.sample_ids, 1);
    if (to != from && !buffer.objects.empty()) buffer.objects[to] = std::move(buffer.objects[from]);
    ++to;
  }
  return static_cast<int>(to);
}

void BatchPool::make_room(BatchBuffer& buffer, std::size_t samples, std::size_t sample_bytes) const {
  const std::size_t values = aligned(samples * sample_bytes), places = aligned(samples * sizeof(nn::PixelPlace)),
                    labels = aligned(samples * sizeof(std::int32_t)), ids = aligned(samples * sizeof(std::uint32_t));
  const std::size_t bytes = values + places + labels + ids;
  if (buffer.room < bytes) {
    buffer = {};
    buffer.memory = memory_ ? memory_(bytes) : ordinary_memory(bytes);
    buffer.room = bytes;
  }
  buffer.values = buffer.memory.get();
  buffer.places = reinterpret_cast<nn::PixelPlace*>(buffer.values + values);
  buffer.labels = reinterpret_cast<std::int32_t*>(buffer.values + values + places);
  buffer.sample_ids = reinterpret_cast<std::uint32_t*>(buffer.values + values + places + labels);
}

std::shared_ptr<BatchBuffer> BatchPool::take(std::size_t samples, std::size_t sample_bytes) {
  std::unique_ptr<BatchBuffer> buffer;
  {
    const MutexLock lock(shelf_->mutex);
    if (!shelf_->free.empty()) {
      buffer = std::move(shelf_->free.back());
      shelf_->free.pop_back();
    }
  }
  if (!buffer) buffer = std::make_unique<BatchBuffer>();
  make_room(*buffer, samples, sample_bytes);
  return {buffer.release(), [shelf = shelf_](BatchBuffer* done) {
            const MutexLock lock(shelf->mutex);
            shelf->free.emplace_back(done);
          }};
}

}  // namespace dtrain::data
