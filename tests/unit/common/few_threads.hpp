// A limit of the address space stands for one of processes, which does not bind root: the stack of a thread finds no
// room. For tests only.
#pragma once

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace dtrain {

class FewThreads {
 public:
  FewThreads() {
    ::getrlimit(RLIMIT_AS, &usual_);
    constexpr rlim_t kRoom = 64u << 20;
    const rlimit small{in_use() + kRoom, usual_.rlim_max};
    ::setrlimit(RLIMIT_AS, &small);
  }
  ~FewThreads() { ::setrlimit(RLIMIT_AS, &usual_); }
  FewThreads(const FewThreads&) = delete;

 private:
  static rlim_t in_use() {
    std::ifstream status("/proc/self/statm");
    rlim_t pages = 0;
    status >> pages;
    return pages * 4096;
  }

  rlimit usual_{};
};

}  // namespace dtrain
