// The calling thread's processor time.
#pragma once

#include <ctime>
#include <utility>
#include <vector>

#include <dtrain/base/stats.hpp>

namespace dtrain::backend::cpu {

inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What work() takes, the median of `repeats` after one that does not count.
template <typename Work>
double median_seconds(int repeats, Work work) {
  work();
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const double start = thread_seconds();
    work();
    seconds.push_back(thread_seconds() - start);
  }
  return median(std::move(seconds));
}

}  // namespace dtrain::backend::cpu
