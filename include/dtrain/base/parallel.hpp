// A loop over many independent items on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <dtrain/base/cpus.hpp>

namespace dtrain {

// Calls act(i) once for every i below count, in any order, on as many threads as may use a processor each. Returns when
// all are done; the first exception is thrown again then, and what had not begun is left out.
template <typename Act>
void for_each_in_parallel(std::size_t count, const Act& act) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr thrown;
  std::mutex mutex;  // guards thrown
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) act(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min<std::size_t>(count, static_cast<std::size_t>(usable_cpus())); ++i) {
    threads.emplace_back(work);
  }
  work();
  threads.clear();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace dtrain
