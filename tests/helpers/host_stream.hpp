// A stream that is a thread of this process: work is done in order, later. What tests hand to the stand-in of NCCL as
// cudaStream_t.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dtrain::testing {

class HostStream {
 public:
  HostStream() : thread_([this](std::stop_token stop) { serve(std::move(stop)); }) {}

  // Virtual, so that a library that only has the pointer calls the program's.
  virtual void enqueue(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    works_.push_back(std::move(work));
    changed_.notify_all();
  }
  bool is_idle() {
    const std::lock_guard lock(mutex_);
    return works_.empty();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return works_.empty(); });
  }
  virtual ~HostStream() = default;

 private:
  void serve(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !works_.empty(); })) {
      const std::function<void()>& work = works_.front();
      lock.unlock();
      work();
      lock.lock();
      works_.pop_front();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;  // guards works_, whose first is being done
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> works_;
  std::jthread thread_;
};

}  // namespace dtrain::testing
