// Many items that several threads make, and one thread uses in their order.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/base/thread_error.hpp>

namespace dtrain {

// Calls make(i) for every i below `count` on `threads` threads and take(i, result) on the caller's, in order. At most
// 8 results a thread wait to be taken: that bounds the memory. run() throws the exception of the lowest i. One mutex
// guards the slots and both counters; it is not held during make() and take(). Workers wait on `room_` while the slots
// are full, the caller waits on `done_` for the next result. The destructor lets workers finish the item in hand.
template <typename Result, typename Make, typename Take>
class OrderedWork {
 public:
  OrderedWork(std::size_t count, int threads, const Make& make, const Take& take)
      : count_(count), make_(make), take_(take), slots_(static_cast<std::size_t>(threads) * 8) {
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {  // those that are there share the work
      if (threads_.empty()) throw no_thread("that works on the items", error);
    }
  }
  ~OrderedWork() {
    {
      const MutexLock lock(mutex_);
      begun_ = count_;
    }
    room_.notify_all();
  }

  void run() {
    for (std::size_t i = 0; i < count_; ++i) {
      Slot slot = wait_for(i);
      if (slot.error) std::rethrow_exception(slot.error);
      take_(i, std::move(*slot.result));
    }
  }

 private:
  struct Slot {
    std::optional<Result> result;
    std::exception_ptr error;
    bool full() const { return result || error; }
  };

  void work() {
    MutexLock lock(mutex_);
    for (;;) {
      while (begun_ < count_ && begun_ >= taken_ + slots_.size()) room_.wait(mutex_);
      if (begun_ == count_) return;
      const std::size_t i = begun_++;
      lock.unlock();
      Slot slot;
      try {
        slot.result = make_(i);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      slots_[i % slots_.size()] = std::move(slot);
      done_.notify_one();
    }
  }

  Slot wait_for(std::size_t i) {
    MutexLock lock(mutex_);
    while (!slots_[i % slots_.size()].full()) done_.wait(mutex_);
    Slot slot = std::exchange(slots_[i % slots_.size()], {});
    taken_ = i + 1;
    lock.unlock();
    room_.notify_all();
    return slot;
  }

  const std::size_t count_;
  const Make& make_;
  const Take& take_;
  Mutex mutex_;
  CondVar room_, done_;
  std::size_t begun_ DTRAIN_GUARDED_BY(mutex_) = 0, taken_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::vector<Slot> slots_ DTRAIN_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

template <typename Result, typename Make, typename Take>
void make_in_order(std::size_t count, int threads, const Make& make, const Take& take) {
  OrderedWork<Result, Make, Take>(count, threads, make, take).run();
}

}  // namespace dtrain
