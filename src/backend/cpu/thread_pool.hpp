// The executable's own threads. Each runs oneDNN on itself alone; several meet at a barrier when they share a shard.
//
// Threads: one caller at a time. start() hands one function to all threads; each calls it with its number.
// Locks: mutex_ guards the hand-over; it is free while the function runs.
// Lifetime: what the function uses must stay until wait() returned. The destructor waits for work under way, then
// joins. Failure: all threads finish their call; wait() rethrows the first exception, once.
#pragma once

#include <barrier>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <dtrain/base/mutex.hpp>

namespace dtrain::backend::cpu {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  int size() const { return static_cast<int>(threads_.size()); }

  // Calls work(thread) on every thread, after what was started before; returns at once.
  void start(std::function<void(int thread)> work);
  // Waits until all is done; rethrows the first exception.
  void wait();
  void run(std::function<void(int thread)> work) {
    start(std::move(work));
    wait();
  }

 private:
  void stop();  // ends and joins the threads
  void serve(int thread);

  Mutex mutex_;
  CondVar changed_;
  std::function<void(int)> work_;  // set while no thread is busy, and called without the mutex
  std::uint64_t round_ DTRAIN_GUARDED_BY(mutex_) = 0;
  int busy_ DTRAIN_GUARDED_BY(mutex_) = 0;
  bool stopping_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ DTRAIN_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace dtrain::backend::cpu
