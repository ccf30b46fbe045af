#include "detach.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

namespace dtrain::job {
namespace {

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

FileDescriptor open_log(const Path& path) {
  FileDescriptor log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log) throw Error(fmt::format("{}: cannot write: {}", path.string(), std::strerror(errno)));
  return log;
}

void leave_terminal(const FileDescriptor& log) {
  ::setsid();
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(log.get(), STDOUT_FILENO);
  ::dup2(log.get(), STDERR_FILENO);
}

// True: a byte came, false: the other end was closed.
bool wait_for_byte(const FileDescriptor& pipe, pid_t child) {
  while (true) {
    pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, 200);
    if (stop_signal() != 0) {
      ::kill(child, SIGTERM);
      throw Interrupted(stop_signal(), "stopped before the job ran; it was told to end");
    }
    if (waiting.revents == 0) continue;
    char byte = 0;
    const ssize_t got = ::read(pipe.get(), &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1;
  }
}

int exit_code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Detached detach(const JobFolder& folder) {
  make_folder(folder.logs());
  const Path log_path = folder.logs() / "coordinator.log";
  const FileDescriptor log = open_log(log_path);
  const auto written_before = std::filesystem::file_size(log_path);
  Pipe pipe = make_pipe();
  std::fflush(nullptr);  // or both processes would write what is buffered
  const pid_t child = ::fork();
  if (child < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (child == 0) {
    leave_terminal(log);
    auto end = std::make_shared<FileDescriptor>(std::move(pipe.write));
    return {.tell_running =
                [end] {
                  if (*end && ::write(end->get(), "r", 1) == 1) *end = FileDescriptor();
                },
            .outcome = {}};
  }
  watch_stop_signals();
  pipe.write = FileDescriptor();
  Detached::Outcome outcome{.runs = wait_for_byte(pipe.read, child), .pid = child, .exit_code = 0, .said = {}};
  if (!outcome.runs) outcome.exit_code = exit_code_of(child);
  outcome.said = read_file(log_path).substr(written_before);
  return {.tell_running = [] {}, .outcome = std::move(outcome)};
}

}  // namespace dtrain::job
