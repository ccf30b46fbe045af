// The calling thread's processor time in seconds.
#pragma once

#include <ctime>

namespace dtrain::backend::cpu {

inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace dtrain::backend::cpu
