// A thread whose file locks the kernel refuses stands for a file system that is mounted without locks. For tests only.
#pragma once

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

namespace dtrain {

// From now on flock(2) and F_OFD_SETLK of this thread, and of those that it starts, fail with ENOLCK. False: this
// kernel filters no system calls.
inline bool refuse_file_locks() {
  const sock_filter load_call = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  const sock_filter load_command = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1]));
  std::array<sock_filter, 7> program{{
      load_call,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      load_command,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Calls act() in such a thread. False: it cannot be made, and act() was not called.
template <typename Act>
[[nodiscard]] bool without_file_locks(const Act& act) {
  bool refused = false;
  std::thread([&] {
    refused = refuse_file_locks();
    if (refused) act();
  }).join();
  return refused;
}

}  // namespace dtrain
