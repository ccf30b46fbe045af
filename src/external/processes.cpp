#include "processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>

#include "find_program.hpp"

namespace dtrain::external {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
// Between looks where the kernel has no pidfd_open (before Linux 5.3).
constexpr auto kPoll = 20ms;
constexpr auto kStopPoll = 50ms;
// For the kernel to end what was killed: a process that writes to a slow disk may take so long.
constexpr auto kLastTime = 5s;

FileDescriptor descriptor_of(pid_t process) {
  const long descriptor = ::syscall(SYS_pidfd_open, process, 0);
  return descriptor < 0 ? FileDescriptor() : FileDescriptor(static_cast<int>(descriptor));
}

FileDescriptor open_log(const Path& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (made < 0) throw Error(fmt::format("{}: cannot be written: {}", file.string(), ::strerror(errno)));
  return FileDescriptor(made);
}

}  // namespace

Processes::Processes(const std::vector<Part>& parts, const Path& logs, const std::string& name, std::string mark)
    : mark_(std::move(mark)) {
  try {
    for (const Part& part : parts) start(part, logs, name);
  } catch (const Error&) {
    stop(SIGKILL, 0ms);
    throw;
  }
}

Processes::~Processes() { stop(SIGKILL, 0ms); }

void Processes::start(const Part& part, const Path& logs, const std::string& name) {
  const std::string who =
      part.role == Role::worker ? "its program" : fmt::format("its {} {}", role_name(part.role), part.index);
  Spawn child;
  child.executable = find_program(part.command.front(), part.environment);
  child.arguments = part.command;
  child.environment = part.environment;
  child.output = STDOUT_FILENO;
  child.error = STDERR_FILENO;
  child.death_signal = SIGKILL;
  FileDescriptor log;
  if (part.role != Role::worker) {
    log = open_log(logs / fmt::format("{}.{}{}.log", name, role_name(part.role), part.index));
    child.output = child.error = log.get();
  }
  const pid_t id = spawn(child);
  processes_.push_back({who, id, descriptor_of(id), std::nullopt});
}

std::optional<Processes::Failure> Processes::watch(std::chrono::milliseconds wait) {
  wait_for_an_end(wait);
  reap();
  for (const Process& process : processes_) {
    if (process.end && !process.end->ok()) return Failure{process.who, *process.end};
  }
  return std::nullopt;
}

bool Processes::all_done() const {
  return std::ranges::all_of(processes_, [](const Process& process) { return process.end.has_value(); });
}

void Processes::stop(int signal, std::chrono::milliseconds grace) {
  reap();
  for (const Process& process : processes_) {
    if (!process.end) ::kill(-process.id, signal);
  }
  for (const auto end = Clock::now() + grace; !all_done() && Clock::now() < end; reap()) {
    wait_for_an_end(std::min(std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()), kStopPoll));
  }
  for (const Process& process : processes_) {
    if (!process.end) kill_tree(process.id, mark_);
  }
  for (const auto end = Clock::now() + kLastTime; !all_done() && Clock::now() < end; reap()) wait_for_an_end(kStopPoll);
  // Also who left its parents, its session and its environment behind: orphans are this process's children.
  kill_tree(::getpid(), mark_);
  while (reap_adopted({}) > 0) {
  }
}

void Processes::wait_for_an_end(std::chrono::milliseconds wait) {
  std::vector<pollfd> waits;
  bool all_are_seen = true;
  for (const Process& process : processes_) {
    if (process.end) continue;
    all_are_seen = all_are_seen && process.ended.get() >= 0;
    waits.push_back({process.ended.get(), POLLIN, 0});
  }
  if (waits.empty()) return std::this_thread::sleep_for(wait);
  if (!all_are_seen) return std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(wait, kPoll));
  ::poll(waits.data(), waits.size(), static_cast<int>(wait.count()));
}

void Processes::reap() {
  for (Process& process : processes_) {
    if (!process.end && has_ended(process.id)) reap(process);
  }
}

// What it left behind goes first: the number of its group is safe from use by others until its leader is reaped.
void Processes::reap(Process& process) {
  ::kill(-process.id, SIGKILL);
  int status = 0;
  ::waitpid(process.id, &status, WNOHANG);
  process.end = ProcessEnd{WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

}  // namespace dtrain::external
