// Buffers that are used again: fresh memory costs a page fault every 4 KiB, as much as sending it.
#pragma once

#include <functional>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/float_buffer.hpp>

namespace dtrain::comm {

// Any thread.
class FloatPool {
 public:
  // `make` gives buffers of any content, for any thread; without it they are memory of this process.
  explicit FloatPool(std::function<FloatBuffer(std::int64_t size)> make = {}) : make_(std::move(make)) {}

  FloatBuffer take(std::int64_t size) {  // any content
    {
      const MutexLock lock(mutex_);
      if (!spare_.empty() && static_cast<std::int64_t>(spare_.back().size()) == size) {
        FloatBuffer buffer = std::move(spare_.back());
        spare_.pop_back();
        return buffer;
      }
      spare_.clear();  // of another shape: it will hardly come back
    }
    return make_ ? make_(size) : FloatBuffer(size);
  }
  void give(FloatBuffer buffer) {
    if (buffer.empty()) return;
    const MutexLock lock(mutex_);
    spare_.push_back(std::move(buffer));
  }

 private:
  const std::function<FloatBuffer(std::int64_t size)> make_;
  Mutex mutex_;
  std::vector<FloatBuffer> spare_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::comm
