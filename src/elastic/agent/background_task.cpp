#include "background_task.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process_end.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kLook = 20ms;

// A file without a name that holds the text: a pipe could be too small for it.
FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(::memfd_create("dtrain-input", MFD_CLOEXEC));
  const bool written = file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::lseek(file.get(), 0, SEEK_SET) == 0;
  if (!written) throw Error(fmt::format("cannot hold {} bytes for a command: {}", text.size(), ::strerror(errno)));
  return file;
}

}  // namespace

void BackgroundTask::start(Command command, std::function<void(Ended)> on_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", ::strerror(errno)));
  FileDescriptor read_end(ends[0]);
  const FileDescriptor write_end(ends[1]);
  const FileDescriptor input = file_with(command.input);
  command.spawn.environment.push_back(command.mark);
  command.spawn.input = input.get();
  command.spawn.output = command.spawn.error = write_end.get();
  command.spawn.death_signal = SIGKILL;
  process_ = spawn(command.spawn);
  mark_ = command.mark;
  on_end_ = std::move(on_end);
  begun_ = Clock::now();
  deadline_ = begun_ + command.deadline;
  watch_output(std::move(read_end));
  look();
}

void BackgroundTask::watch_output(FileDescriptor pipe) {
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  auto shared = std::make_shared<FileDescriptor>(std::move(pipe));
  loop_.when_readable(shared->get(), [self = shared_from_this(), shared] {
    char chunk[64 << 10];
    const ssize_t got = ::read(shared->get(), chunk, sizeof chunk);
    if (got > 0) self->output_.add({chunk, static_cast<std::size_t>(got)});
    const bool again = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    if (!again) self->output_ended_ = true;
    return again && !self->finished_;
  });
}

// What it left behind in the background may hold its output open for ever: one more look, then it is over.
void BackgroundTask::look() {
  const bool ended = has_ended(process_);
  if (ended && std::exchange(output_ended_, true)) {
    int status = 0;
    ::waitpid(process_, &status, WNOHANG);
    return finish(status);
  }
  if (!ended && in_time_ && Clock::now() >= deadline_) end_overdue();
  loop_.after(kLook, [self = shared_from_this()] { self->look(); });
}

void BackgroundTask::end_overdue() {
  in_time_ = false;
  kill_tree(process_, mark_);
}

void BackgroundTask::finish(int status) {
  finished_ = true;
  process_ = 0;
  output_.end();
  Ended ended{.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
              .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
              .in_time = in_time_,
              .last_lines = output_.last_lines(),
              .seconds = std::chrono::duration<double>(Clock::now() - begun_).count()};
  const auto on_end = std::move(on_end_);
  on_end(std::move(ended));
}

std::string describe_end(const BackgroundTask::Ended& ended) {
  if (!ended.in_time)
    return fmt::format("did not end within {}", format_duration(std::chrono::duration<double>(ended.seconds)));
  if (ended.signal == 0 && ended.exit_code == 0) return "";
  return dtrain::describe_end(ended.exit_code, ended.signal);
}

}  // namespace dtrain::elastic
