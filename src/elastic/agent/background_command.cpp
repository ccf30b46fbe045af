#include "background_command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kLook = 20ms;

}  // namespace

// Its loop keeps it until the command has ended: one that still runs has lost its loop.
BackgroundCommand::~BackgroundCommand() {
  if (process_ != 0) kill_tree(process_, mark_);
}

// What may fail comes before the command: one that runs is watched.
void BackgroundCommand::start(Options options, std::function<void(Ended)> on_end) {
  Pipe output = make_pipe();
  const FileDescriptor input = memory_file(options.input);
  options.spawn.environment.push_back(options.mark);
  options.spawn.input = input.get();
  options.spawn.output = options.spawn.error = output.write_end.get();
  options.spawn.death_signal = SIGKILL;
  watch_output(std::move(output.read_end));
  process_ = spawn(options.spawn);
  mark_ = options.mark;
  on_end_ = std::move(on_end);
  begun_ = Clock::now();
  deadline_ = begun_ + options.deadline;
  look();
}

void BackgroundCommand::watch_output(FileDescriptor pipe) {
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  auto shared = std::make_shared<FileDescriptor>(std::move(pipe));
  loop_.when_readable(shared->get(), [self = shared_from_this(), shared] {
    char chunk[64 << 10];
    const ssize_t got = ::read(shared->get(), chunk, sizeof chunk);
    if (got > 0) self->output_.add(OutputStream::output, {chunk, static_cast<std::size_t>(got)});
    const bool again = got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    if (!again) self->output_ended_ = true;
    return again && !self->finished_;
  });
}

// A background process that the command left may hold its output open for ever, so the end of the output is awaited
// only once more.
void BackgroundCommand::look() {
  const bool ended = has_ended(process_);
  if (ended && std::exchange(output_ended_, true)) return finish(wait_for_end(process_));
  if (!ended && in_time_ && Clock::now() >= deadline_) end_overdue();
  loop_.after(kLook, [self = shared_from_this()] { self->look(); });
}

void BackgroundCommand::end_overdue() {
  in_time_ = false;
  kill_tree(process_, mark_);
}

void BackgroundCommand::finish(const ProcessEnd& end) {
  finished_ = true;
  process_ = 0;
  output_.end(OutputStream::output);
  Ended ended{.exit_code = end.code,
              .signal = end.signal,
              .in_time = in_time_,
              .last_lines = output_.last_lines(),
              .seconds = std::chrono::duration<double>(Clock::now() - begun_).count()};
  const auto on_end = std::move(on_end_);
  on_end(std::move(ended));
}

std::string describe_end(const BackgroundCommand::Ended& ended) {
  if (!ended.in_time)
    return fmt::format("did not end within {}", format_duration(std::chrono::duration<double>(ended.seconds)));
  if (ended.signal == 0 && ended.exit_code == 0) return "";
  return dtrain::describe_end(ended.exit_code, ended.signal);
}

}  // namespace dtrain::elastic
