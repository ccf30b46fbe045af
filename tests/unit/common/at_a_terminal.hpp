// A process at a terminal, as a user's shell starts it.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

// Whether act() is true in a process of its own, in the foreground of a new terminal, at which the user typed `typed`.
template <typename Act>
bool at_a_terminal(std::string_view typed, const Act& act) {
  const FileDescriptor master(::posix_openpt(O_RDWR | O_NOCTTY));
  if (::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) return false;
  const FileDescriptor terminal(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY));
  if (::write(master.get(), typed.data(), typed.size()) != static_cast<ssize_t>(typed.size())) return false;
  const pid_t process = ::fork();
  if (process == 0) {
    ::setsid();
    ::_exit(::ioctl(terminal.get(), TIOCSCTTY, 0) == 0 && act() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(process, &status, 0);
  return status == 0;
}

}  // namespace dtrain
