// The lock of a registered cluster, and waits of its head.
#pragma once

#include <chrono>
#include <thread>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Looks again and again until it is done; false: not within `patience`.
template <typename Done>
bool wait_until(const Done& done, std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

inline constexpr const char* kClusterLock = "cluster.lock";

// Held by the command that changes the cluster. Throws Error if another one holds it for long.
FileLock lock_cluster(const Path& folder);

}  // namespace dtrain::job
