#include "late_children.hpp"

#include <sys/wait.h>

namespace dtrain {

void LateChildren::add(pid_t child) {
  {
    const MutexLock lock(mutex_);
    children_.push_back(child);
  }
  reap();
}

void LateChildren::reap() {
  const MutexLock lock(mutex_);
  std::erase_if(children_, [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; });
}

}  // namespace dtrain
