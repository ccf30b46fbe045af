// Loops over many independent items on several threads. Both functions block until all threads have ended.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain {

// Calls work() on this many threads, or on as many as the system gives; the caller's thread is one of them. `work` must
// not throw.
template <typename Work>
void run_on_threads(std::size_t count, const Work& work) {
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {  // a limit on processes or memory: those that are there share the work
  }
  work();
}

// For work that a failure makes useless. Calls act(i) once for every i below `count`, in any order, on as many threads
// as may use a processor each. Throws the first exception, in time; items that had not begun by then are left out.
template <typename Act>
void for_each_in_parallel(std::size_t count, const Act& act) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr thrown;
  Mutex mutex;  // guards thrown
  run_on_threads(std::min<std::size_t>(count, static_cast<std::size_t>(usable_cpus())), [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) act(i);
    } catch (...) {
      next = count;
      const MutexLock lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

// For work whose items must all be tried, such as calls to other machines. Calls act(i) for every i below `count`, in
// this order, on at most `threads` threads. Throws the exception of the lowest i that failed, after all were tried.
template <typename Act>
void try_each_in_parallel(std::size_t count, std::size_t threads, const Act& act) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  run_on_threads(std::min(count, std::max<std::size_t>(1, threads)), [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        act(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace dtrain
