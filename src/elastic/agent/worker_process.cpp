#include "worker_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stack_dump.hpp>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
// For a worker to write its stacks before it is killed.
constexpr auto kDumpTime = 300ms;
// After the process ended, for the last of what it said and printed.
constexpr auto kDrainTime = 1000ms;
// Between looks at a process where the kernel has no pidfd_open (before Linux 5.3) or no descriptor is left.
constexpr auto kPoll = 20ms;
// A worker that closed its socket cannot be told anything more: it has so long to end by itself.
constexpr auto kSilentTime = 20s;

std::pair<FileDescriptor, FileDescriptor> make_pair(bool sockets) {
  int ends[2];
  const int made = sockets ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : ::pipe2(ends, O_CLOEXEC);
  if (made != 0) throw Error(fmt::format("cannot connect a worker: {}", std::strerror(errno)));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

void WorkerProcess::start(const std::vector<std::string>& command, std::vector<std::string> environment,
                          const Path& folder, const std::string& mark, Events events) {
  mark_ = mark;
  events_ = std::move(events);
  auto [read_end, write_end] = make_pair(false);
  auto [ours, theirs] = make_pair(true);
  environment.push_back(mark);
  Spawn child = spawn_of(command);
  child.environment = std::move(environment);
  child.folder = folder;
  child.output = child.error = write_end.get();
  child.extra = theirs.get();
  child.death_signal = SIGKILL;
  channel_ = net::adopt_channel(loop_, std::move(ours));
  watch_output(std::move(read_end));
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

void WorkerProcess::send(std::string message) { channel_->send(std::move(message)); }

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
  const std::string lines = output_.add(line + "\n");
  if (!lines.empty()) events_.on_output(lines);
}

void WorkerProcess::watch_output(FileDescriptor pipe) {
  ::fcntl(pipe.get(), F_SETFL, O_NONBLOCK);
  auto shared = std::make_shared<FileDescriptor>(std::move(pipe));
  loop_.when_readable(shared->get(), [self = shared_from_this(), shared] { return self->read_output(shared->get()); });
}

bool WorkerProcess::read_output(int pipe) {
  char chunk[64 << 10];
  const ssize_t got = ::read(pipe, chunk, sizeof chunk);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return !finished_;
  const std::string lines = got > 0 ? output_.add({chunk, static_cast<std::size_t>(got)}) : output_.end();
  if (!lines.empty() && !finished_) events_.on_output(lines);
  if (got > 0) return !finished_;
  output_ended_ = true;
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
  // What it left behind still holds its pipe and its socket; killed, they end. The group's number is safe from use by
  // others until its leader is reaped.
  ::kill(-process_, SIGKILL);
  kill_marked(mark_);
  int status = 0;
  ::waitpid(process_, &status, WNOHANG);
  reaped_ = true;
  exited_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  exited_.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  loop_.after(kDrainTime, [self = shared_from_this()] { self->finish(); });
  finish_if_over();
  return true;
}

void WorkerProcess::on_channel_closed() {
  channel_closed_ = true;
  finish_if_over();
  if (!reaped_) loop_.after(kSilentTime, [self = shared_from_this()] { self->kill(false); });
}

void WorkerProcess::finish_if_over() {
  if (reaped_ && output_ended_ && channel_closed_) finish();
}

void WorkerProcess::finish() {
  if (std::exchange(finished_, true)) return;
  if (!output_ended_) output_.end();
  exited_.last_lines = output_.last_lines();
  channel_ = nullptr;
  const auto on_exit = std::move(events_.on_exit);
  on_exit(exited_);
}

}  // namespace dtrain::elastic
