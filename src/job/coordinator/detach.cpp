#include "detach.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::job {
namespace {

// Returns true if a byte came, false if the other end was closed.
bool wait_for_byte(const FileDescriptor& pipe, pid_t child) {
  while (true) {
    pollfd waiting{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    ::poll(&waiting, 1, 200);
    if (stop_signal() != 0) {
      ::kill(child, SIGTERM);
      throw Interrupted(stop_signal(), "stopped before the job ran; the job was asked to end");
    }
    if (waiting.revents == 0) continue;
    char byte = 0;
    const ssize_t got = ::read(pipe.get(), &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1;
  }
}

}  // namespace

Detached detach(const JobFolder& folder) {
  make_folder(folder.logs());
  const Path log_path = folder.coordinator_log();
  const FileDescriptor log = open_log(log_path);
  const auto written_before = std::filesystem::file_size(log_path);
  Pipe pipe = make_pipe();
  const pid_t child = fork_process();
  if (child == 0) {
    ::setsid();
    redirect_streams(log);
    auto end = std::make_shared<FileDescriptor>(std::move(pipe.write_end));
    return {.tell_running =
                [end] {
                  if (*end && ::write(end->get(), "r", 1) == 1) *end = FileDescriptor();
                },
            .outcome = {}};
  }
  watch_stop_signals();
  pipe.write_end = FileDescriptor();
  Detached::Outcome outcome{.runs = wait_for_byte(pipe.read_end, child), .pid = child, .exit_code = 0, .said = {}};
  if (!outcome.runs) outcome.exit_code = wait_for_end(child).shell_code();
  outcome.said = read_file(log_path).substr(written_before);
  return {.tell_running = [] {}, .outcome = std::move(outcome)};
}

}  // namespace dtrain::job
