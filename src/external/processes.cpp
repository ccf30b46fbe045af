#include "processes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>

#include "find_program.hpp"

namespace dtrain::external {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
// Interval of looks where the kernel has no pidfd_open (before Linux 5.3).
constexpr auto kPoll = 20ms;
constexpr auto kStopPoll = 50ms;
// Time after the end of a program for what it leaves to write the rest: the `tee` of `exec > >(tee FILE)` ends after
// its shell. A failure is reported before those of ranks that fail because of it.
constexpr auto kLinger = 500ms, kLingerOfFailure = 50ms;
constexpr auto kLingerPoll = 5ms;
// Time for the kernel to end killed processes: one that writes to a slow disk may take so long.
constexpr auto kLastTime = 5s;

FileDescriptor descriptor_of(pid_t process) {
  const long descriptor = ::syscall(SYS_pidfd_open, process, 0);
  return descriptor < 0 ? FileDescriptor() : FileDescriptor(static_cast<int>(descriptor));
}

// It has ended, and is not reaped yet.
bool ended_well(pid_t process) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_code == CLD_EXITED && info.si_status == 0;
}

}  // namespace

Processes::Processes(const std::vector<RankProcess>& processes, Path logs, std::string name, std::string mark)
    : logs_(std::move(logs)), name_(std::move(name)), mark_(std::move(mark)) {
  try {
    for (const RankProcess& process : processes) start(process);
  } catch (const Error&) {
    stop(SIGKILL, 0ms);
    throw;
  }
}

Processes::~Processes() { stop(SIGKILL, 0ms); }

void Processes::start(const RankProcess& process) {
  const std::string who =
      process.role == Role::worker ? "its program" : fmt::format("its {} {}", role_name(process.role), process.index);
  Spawn child;
  child.executable = find_program(process.command.front(), process.environment);
  child.arguments = process.command;
  child.environment = process.environment;
  child.output = STDOUT_FILENO;
  child.error = STDERR_FILENO;
  child.death_signal = SIGKILL;
  std::unique_ptr<ServerLog> log;
  if (process.role != Role::worker) {
    log =
        std::make_unique<ServerLog>(logs_ / fmt::format("{}.{}{}.log", name_, role_name(process.role), process.index));
    child.output = child.error = log->output();
  }
  const pid_t id = spawn(child);
  if (log) log->started();
  processes_.push_back({who, id, descriptor_of(id), std::nullopt, std::move(log)});
}

std::optional<Processes::Failure> Processes::watch(std::chrono::milliseconds wait) {
  wait_for_an_end(wait);
  reap_settled();
  reap_orphans();
  for (const Process& process : processes_) {
    if (process.end && !process.end->ok()) return Failure{process.who, *process.end};
  }
  return std::nullopt;
}

bool Processes::all_done() const {
  return std::ranges::all_of(processes_, [](const Process& process) { return process.end.has_value(); });
}

void Processes::signal_worker(int signal) {
  reap();
  if (const Process& worker = processes_.front(); !worker.end) ::kill(worker.id, signal);
}

void Processes::stop(int signal, std::chrono::milliseconds grace) {
  reap();
  for (const Process& process : processes_) {
    if (!process.end) ::kill(-process.id, signal);
  }
  for (const auto end = Clock::now() + grace; !all_done() && Clock::now() < end; reap_whole_groups()) {
    wait_for_an_end(std::min(std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()), kStopPoll));
    reap_orphans();
  }
  for (const Process& process : processes_) {
    if (!process.end) kill_tree(process.id, mark_);
  }
  for (const auto end = Clock::now() + kLastTime; !all_done() && Clock::now() < end; reap()) wait_for_an_end(kStopPoll);
  // Also kills orphans that left their session and environment: they are children of this process.
  kill_tree(::getpid(), mark_);
  while (reap_adopted({}) > 0) {
  }
}

void Processes::wait_for_an_end(std::chrono::milliseconds wait) {
  std::vector<pollfd> waits;
  bool all_are_seen = true;
  for (const Process& process : processes_) {
    if (process.end || process.member != 0) continue;  // the latter would end the wait at once
    all_are_seen = all_are_seen && process.ended.get() >= 0;
    waits.push_back({process.ended.get(), POLLIN, 0});
  }
  if (waits.empty()) return std::this_thread::sleep_for(wait);
  if (!all_are_seen) return std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(wait, kPoll));
  const auto left = std::max(wait, std::chrono::milliseconds(0));  // a time below 0 would never be over
  ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
}

void Processes::reap() {
  for (Process& process : processes_) {
    if (!process.end && has_ended(process.id)) reap(process);
  }
}

// A leader that ended while others of its group still run stays unreaped: reap() would kill them, and the number of the
// group could become another's.
void Processes::reap_whole_groups() {
  for (Process& process : processes_) {
    if (process.end || !has_ended(process.id)) continue;
    process.member = living_member(process.id, process.member);
    if (process.member == 0) reap(process);
  }
}

void Processes::reap_settled() {
  for (Process& process : processes_) {
    if (process.end || !has_ended(process.id)) continue;
    if (!ended_well(process.id)) {
      for (const auto end = Clock::now() + kLingerOfFailure; Clock::now() < end;) {
        process.member = living_member(process.id, process.member);
        if (process.member == 0) break;
        std::this_thread::sleep_for(kLingerPoll);
      }
      reap(process);
      continue;
    }
    process.member = living_member(process.id, process.member);
    if (process.seen_ended == Clock::time_point{}) process.seen_ended = Clock::now();
    if (process.member == 0 || Clock::now() - process.seen_ended >= kLinger) reap(process);
  }
}

// What the programs left, and this process adopted, would count against the limit on processes until it is reaped.
void Processes::reap_orphans() {
  std::vector<pid_t> own;
  for (const Process& process : processes_) {
    if (!process.end) own.push_back(process.id);
  }
  while (reap_adopted(own) > 0) {
  }
}

// Kills the processes it left first: the number of its group cannot be reused until its leader is reaped.
void Processes::reap(Process& process) {
  ::kill(-process.id, SIGKILL);
  process.end = wait_for_end(process.id);
}

}  // namespace dtrain::external
