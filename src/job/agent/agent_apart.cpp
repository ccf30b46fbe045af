#include "agent_apart.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include <dtrain/base/process.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// For what was killed to be gone, so that it can be reaped.
constexpr auto kReapTime = 2s;

pid_t fork_or_throw() {
  std::fflush(nullptr);  // or both processes would write what is buffered
  const pid_t child = ::fork();
  if (child < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  return child;
}

// A killed process counts as the shell counts it.
int code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Descriptor 0 becomes nothing, 1 and 2 the log.
void speak_to(const Path& log) {
  const FileDescriptor nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  FileDescriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  ::dup2(nothing.get(), STDIN_FILENO);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(file ? file.get() : nothing.get(), stream);
}

[[noreturn]] void keep(pid_t agent, const std::string& mark, const std::string& spared_mark) {
  speak_to("/dev/null");
  const int code = code_of(agent);
  kill_tree(::getpid(), mark, processes_marked(spared_mark));
  const auto until = std::chrono::steady_clock::now() + kReapTime;
  while (::waitpid(-1, nullptr, WNOHANG) >= 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(5ms);
  }
  ::_exit(code);
}

}  // namespace

Apart go_apart(const std::string& mark, const std::string& spared_mark, const Path& log) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const FileDescriptor read_end(ends[0]);
  auto write_end = std::make_shared<FileDescriptor>(ends[1]);

  const pid_t keeper = fork_or_throw();
  if (keeper > 0) {
    *write_end = FileDescriptor();
    char byte = 0;
    ssize_t got = 0;
    while ((got = ::read(read_end.get(), &byte, 1)) < 0 && errno == EINTR) {
    }
    return {.tell_joined = {}, .outcome = got == 1 ? ExitCode::ok : static_cast<ExitCode>(code_of(keeper))};
  }
  ::setsid();
  adopt_orphans();
  const pid_t agent = fork_or_throw();
  if (agent > 0) {
    *write_end = FileDescriptor();
    keep(agent, mark, spared_mark);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return {.tell_joined =
              [write_end, log] {
                speak_to(log);
                if (*write_end && ::write(write_end->get(), "j", 1) == 1) *write_end = FileDescriptor();
              },
          .outcome = {}};
}

}  // namespace dtrain::job
