#include "worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/stack_dump.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
// Time for a worker to write its stacks before it is killed.
constexpr auto kDumpTime = 300ms;
// Interval of looks at a process where the kernel has no pidfd_open (before Linux 5.3) or no descriptor is left.
constexpr auto kPoll = 20ms;
// Time for a worker that closed its socket to end by itself.
constexpr auto kSilentTime = 20s;

std::pair<FileDescriptor, FileDescriptor> make_socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(fmt::format("cannot connect a worker: {}", std::strerror(errno)), hint_without_descriptors(errno));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

void WorkerProcess::start(const std::vector<std::string>& command, std::vector<std::string> environment,
                          const Path& folder, const std::string& mark, Events events) {
  mark_ = mark;
  events_ = std::move(events);
  Pipe output = make_pipe(), error = make_pipe();
  auto [ours, theirs] = make_socket_pair();
  environment.push_back(mark);
  Spawn child = spawn_of(command);
  child.environment = std::move(environment);
  child.folder = folder;
  child.output = output.write_end.get();
  child.error = error.write_end.get();
  child.extra = theirs.get();
  child.death_signal = SIGKILL;
  channel_ = net::adopt_channel(loop_, std::move(ours));
  watch_output(OutputStream::output, std::move(output.read_end));
  watch_output(OutputStream::error, std::move(error.read_end));
  process_ = spawn(child);
  watch_exit();
  channel_->listen({.on_frame =
                        [weak = weak_from_this()](std::string message) {
                          if (auto self = weak.lock()) self->events_.on_message(std::move(message));
                        },
                    .on_close =
                        [weak = weak_from_this()](const std::string&) {
                          if (auto self = weak.lock()) self->on_channel_closed();
                        }});
  channel_->send(to_json(job_).dump());
}

void WorkerProcess::send(std::string message) {
  if (channel_) channel_->send(std::move(message));
}

void WorkerProcess::hang_up() {
  channel_ = nullptr;
  channel_closed_ = true;
}

void WorkerProcess::ask_to_end() {
  if (!reaped_) ::kill(-process_, SIGTERM);
}

void WorkerProcess::kill(bool dump_stack) {
  if (reaped_) return;
  if (!dump_stack) {
    kill_tree(process_, mark_);
    return;
  }
  log("dtrain: this worker is being ended; its threads and their stacks:");
  for (const std::string& line : describe_threads(process_)) log("dtrain: " + line);
  ::kill(process_, stack_dump_signal());
  loop_.after(kDumpTime, [self = shared_from_this()] { self->kill(false); });
}

void WorkerProcess::log(const std::string& line) {
  const std::string lines = output_.add(OutputStream::error, line + "\n");
  if (!lines.empty()) events_.on_output(OutputStream::error, lines);
}

void WorkerProcess::watch_output(OutputStream stream, FileDescriptor pipe) {
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  auto shared = std::make_shared<FileDescriptor>(std::move(pipe));
  pipes_[static_cast<std::size_t>(stream)] = shared;
  loop_.when_readable(shared->get(),
                      [self = shared_from_this(), stream, shared] { return self->read_output(stream, shared->get()); });
}

std::vector<std::string> WorkerProcess::last_lines() {
  for (const OutputStream stream : {OutputStream::output, OutputStream::error}) {
    const auto pipe = pipes_[static_cast<std::size_t>(stream)].lock();
    for (int i = 0; pipe && i < kFullPipe && is_readable(*pipe); ++i) {
      if (!read_output(stream, pipe->get())) break;
    }
  }
  return output_.last_lines();
}

// Two readers come to the end of a stream: the loop, and last_lines() before it.
bool WorkerProcess::read_output(OutputStream stream, int pipe) {
  bool& open = open_[static_cast<std::size_t>(stream)];
  if (!open) return false;
  char chunk[kPipeChunk];
  const ssize_t got = ::read(pipe, chunk, sizeof chunk);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return !finished_;
  const std::string lines = got > 0 ? output_.add(stream, {chunk, static_cast<std::size_t>(got)}) : output_.end(stream);
  if (!lines.empty() && !finished_) events_.on_output(stream, lines);
  if (got > 0) return !finished_;
  open = false;
  finish_if_over();
  return false;
}

void WorkerProcess::watch_exit() {
  try {
    const FileDescriptor ended(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
    loop_.when_readable(ended.get(), [self = shared_from_this()] { return !self->reap(); });
  } catch (const Error&) {
    look_again_later();
  }
}

void WorkerProcess::look_again_later() {
  loop_.after(kPoll, [self = shared_from_this()] {
    if (!self->reap()) self->look_again_later();
  });
}

bool WorkerProcess::reap() {
  if (!has_ended(process_)) return false;
  // Processes that it left still hold its pipe and socket; kill them. The number of the group cannot be reused until
  // its leader is reaped.
  ::kill(-process_, SIGKILL);
  kill_marked(mark_);
  const ProcessEnd end = wait_for_end(process_);
  reaped_ = true;
  exited_.exit_code = end.code;
  exited_.signal = end.signal;
  loop_.after(drain_, [self = shared_from_this()] { self->finish(); });
  finish_if_over();
  return true;
}

void WorkerProcess::on_channel_closed() {
  channel_closed_ = true;
  finish_if_over();
  if (!reaped_) loop_.after(kSilentTime, [self = shared_from_this()] { self->kill(false); });
}

void WorkerProcess::finish_if_over() {
  if (reaped_ && channel_closed_ && std::ranges::count(open_, true) == 0) finish();
}

void WorkerProcess::finish() {
  if (std::exchange(finished_, true)) return;
  for (const OutputStream stream : {OutputStream::output, OutputStream::error}) output_.end(stream);
  exited_.last_lines = output_.last_lines();
  channel_ = nullptr;
  const auto on_exit = std::move(events_.on_exit);
  on_exit(exited_);
}

}  // namespace dtrain::elastic
