// A limit of a file's size stands for a full disk: a write stops in the middle in the same way. For tests only.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace dtrain {

class SmallFiles {
 public:
  SmallFiles() {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &usual_);
  }
  ~SmallFiles() { lift(); }
  SmallFiles(const SmallFiles&) = delete;
  void limit(rlim_t size) const {
    const rlimit small{size, usual_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  void lift() const { limit(usual_.rlim_cur); }

 private:
  rlimit usual_{};
};

}  // namespace dtrain
