// Children that were killed, and that the kernel still holds: a read from a driver that hangs does not end at once.
#pragma once

#include <sys/types.h>

#include <vector>

#include <dtrain/base/mutex.hpp>

namespace dtrain {

// Any thread. A child that somebody else has reaped is forgotten.
class LateChildren {
 public:
  // Reaps the child, now or, where it has not ended, at a later reap().
  void add(pid_t child);
  // Reaps those that have ended.
  void reap();

 private:
  Mutex mutex_;
  std::vector<pid_t> children_ DTRAIN_GUARDED_BY(mutex_);
};

}  // namespace dtrain
