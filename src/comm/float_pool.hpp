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
  // Which floats of a buffer are used. What is deferred is written to sums alone: a buffer that never was one has pages
  // that were never touched, and so takes no memory for it.
  enum class Use { sum, leaf };

  // `make` gives buffers of any content, for any thread; without it they are memory of this process.
  explicit FloatPool(std::function<FloatBuffer(std::int64_t size)> make = {}) : make_(std::move(make)) {}

  FloatBuffer take(std::int64_t size, Use use = Use::sum) {  // any content
    {
      const MutexLock lock(mutex_);
      std::vector<FloatBuffer>& spare = spare_for(use);
      if (!spare.empty() && static_cast<std::int64_t>(spare.back().size()) == size) {
        FloatBuffer buffer = std::move(spare.back());
        spare.pop_back();
        return buffer;
      }
      spare.clear();  // of another shape: it will hardly come back
    }
    return make_ ? make_(size) : FloatBuffer(size);
  }
  void give(FloatBuffer buffer, Use use = Use::sum) {
    if (buffer.empty()) return;
    const MutexLock lock(mutex_);
    spare_for(use).push_back(std::move(buffer));
  }

 private:
  std::vector<FloatBuffer>& spare_for(Use use) DTRAIN_REQUIRES(mutex_) {
    return use == Use::sum ? spare_sums_ : spare_leaves_;
  }

  const std::function<FloatBuffer(std::int64_t size)> make_;
  Mutex mutex_;
  std::vector<FloatBuffer> spare_sums_ DTRAIN_GUARDED_BY(mutex_), spare_leaves_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::comm
