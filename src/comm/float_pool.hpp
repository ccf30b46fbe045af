// Buffers that are used again: fresh memory costs a page fault every 4 KiB, as much as sending it.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/base/mutex.hpp>

namespace dtrain::comm {

// Any thread.
class FloatPool {
 public:
  std::vector<float> take(std::int64_t size) {  // any content
    {
      const MutexLock lock(mutex_);
      if (!spare_.empty() && static_cast<std::int64_t>(spare_.back().size()) == size) {
        std::vector<float> buffer = std::move(spare_.back());
        spare_.pop_back();
        return buffer;
      }
      spare_.clear();  // of another shape: it will hardly come back
    }
    return std::vector<float>(static_cast<std::size_t>(size));
  }
  void give(std::vector<float>&& buffer) {
    if (buffer.empty()) return;
    const MutexLock lock(mutex_);
    spare_.push_back(std::move(buffer));
  }

 private:
  Mutex mutex_;
  std::vector<std::vector<float>> spare_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain::comm
