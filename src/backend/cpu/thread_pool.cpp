#include "thread_pool.hpp"

#include <omp.h>

#include <utility>

#include <dtrain/base/thread_error.hpp>

namespace dtrain::backend::cpu {

ThreadPool::ThreadPool(int threads) {
  try {
    for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this, thread] { serve(thread); });
  } catch (const std::system_error& error) {
    stop();
    throw no_thread("that computes", error);
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const MutexLock lock(mutex_);
    while (busy_ > 0) changed_.wait(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::start(std::function<void(int)> work) {
  const MutexLock lock(mutex_);
  while (busy_ > 0) changed_.wait(mutex_);
  work_ = std::move(work);
  busy_ = size();
  ++round_;
  changed_.notify_all();
}

void ThreadPool::wait() {
  const MutexLock lock(mutex_);
  while (busy_ > 0) changed_.wait(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::serve(int thread) {
  omp_set_num_threads(1);  // of this thread only: the library asks for it at each primitive
  std::uint64_t seen = 0;
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && round_ == seen) changed_.wait(mutex_);
    if (stopping_) return;
    seen = round_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work_(thread);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--busy_ == 0) changed_.notify_all();
  }
}

}  // namespace dtrain::backend::cpu
