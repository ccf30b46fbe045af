#include <dtrain/base/daemon.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <thread>

#include <dtrain/base/process.hpp>

namespace dtrain {
namespace {

constexpr std::chrono::milliseconds kPoll{5};

}  // namespace

pid_t fork_process() {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw cannot_fork(errno);
  return child;
}

void redirect_streams(const FileDescriptor& output) {
  const FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(output ? output.get() : nothing.get(), stream);
}

void reap_children_for(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (::waitpid(-1, nullptr, WNOHANG) >= 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kPoll);
  }
}

}  // namespace dtrain
