#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain {
namespace {

constexpr int kFirstFree = 4;  // descriptors below are the child's standard ones and `extra`

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Everything the child needs, made before fork(): afterwards it may only call what is safe in a signal handler.
struct Plan {
  const Spawn& child;
  std::vector<char*> arguments = pointers_to(child.arguments);
  std::vector<char*> environment = pointers_to(child.environment);
  pid_t parent = ::getpid();
  int report;  // the error of what failed is written here
};

[[noreturn]] void give_up(const Plan& plan) {
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.report, &error, sizeof error);
  ::_exit(127);
}

void close_others(const Plan& plan) {
  if (::syscall(SYS_close_range, kFirstFree, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = kFirstFree; fd < 65'536; ++fd) {
    if (fd != plan.report) ::close(fd);
  }
}

void place_descriptors(const Plan& plan) {
  const int wanted[] = {plan.child.input, plan.child.output, plan.child.error, plan.child.extra};
  int high[4];
  for (int target = 0; target < 4; ++target) {
    int source = wanted[target];
    if (source < 0 && target < 3) source = ::open("/dev/null", (target == 0 ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
    high[target] = source < 0 ? -1 : ::fcntl(source, F_DUPFD_CLOEXEC, 16);
    if (source >= 0 && high[target] < 0) give_up(plan);
  }
  for (int target = 0; target < 4; ++target) {
    if (high[target] < 0) {
      ::close(target);
    } else if (::dup2(high[target], target) < 0) {
      give_up(plan);
    }
  }
}

void reset_signals(const Spawn& child) {
  const bool spared = child.group == Spawn::Group::inherit;
  struct sigaction action {};
  for (int signal = 1; signal < NSIG; ++signal) {
    const bool ignored = spared && (signal == SIGINT || signal == SIGTERM || signal == SIGHUP);
    action.sa_handler = ignored ? SIG_IGN : SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_child(Plan& plan) {
  const Spawn& child = plan.child;
  // A descriptor of 0 to 3 would be overwritten.
  plan.report = ::fcntl(plan.report, F_DUPFD_CLOEXEC, 16);
  if (child.group == Spawn::Group::session) ::setsid();
  if (child.group == Spawn::Group::process_group) ::setpgid(0, 0);
  reset_signals(child);
  if (child.death_signal != 0) {
    if (::prctl(PR_SET_PDEATHSIG, child.death_signal) != 0) give_up(plan);
    if (::getppid() != plan.parent) ::_exit(127);  // the parent went before the line above
  }
  if (!child.folder.empty() && ::chdir(child.folder.c_str()) != 0) give_up(plan);
  place_descriptors(plan);
  close_others(plan);
  ::execve(child.executable.c_str(), plan.arguments.data(), plan.environment.data());
  give_up(plan);
}

// Signals wait in the child until reset_signals(): it must run no handler of the parent.
pid_t fork_without_signals() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t process = ::fork();
  if (process == 0) return 0;
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return process;
}

// 0 once the program runs: the pipe closes on exec. Else the error that the child met.
int wait_for_exec(int pipe) {
  int error = 0;
  ssize_t got;
  while ((got = ::read(pipe, &error, sizeof error)) < 0 && errno == EINTR) {
  }
  return got == sizeof error ? error : 0;
}

std::string limit_of_processes() {
  rlimit most{};
  if (::getrlimit(RLIMIT_NPROC, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{}", most.rlim_cur);
}

// The kernel says "Exec format error" for text without #!, and for programs of other processors.
std::string hint_for(int error, const Path& program) {
  if (error != ENOEXEC) return {};
  constexpr std::string_view kElf = "\177ELF";
  std::string beginning(kElf.size(), '\0');
  std::ifstream(program, std::ios::binary).read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (beginning == kElf) return "it was built for another kind of processor: build or install it for this machine";
  return "begin a script with a line such as #!/bin/sh, or start it through its interpreter: sh FILE";
}

bool is_in_the_foreground() {
  const FileDescriptor terminal(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC));
  return terminal && ::tcgetpgrp(terminal.get()) == ::getpgrp();
}

}  // namespace

Error cannot_fork(int error) {
  std::string hint;
  if (error == EAGAIN) {
    hint = fmt::format(
        "a limit on processes may be too low: that of this user (ulimit -u, currently {}), or pids.max of the "
        "container",
        limit_of_processes());
  }
  if (error == ENOMEM) hint = "too little memory is free: end other programs, or raise the limit of the container";
  return Error(fmt::format("cannot start a process: {}", std::strerror(error)), hint);
}

Spawn::Group group_that_may_ask() { return is_in_the_foreground() ? Spawn::Group::inherit : Spawn::Group::session; }

pid_t spawn(const Spawn& child) {
  Pipe report = make_pipe();
  Plan plan{.child = child, .report = report.write_end.get()};
  const pid_t process = fork_without_signals();
  if (process == 0) become_child(plan);
  if (process < 0) throw cannot_fork(errno);
  report.write_end = FileDescriptor();
  const int error = wait_for_exec(report.read_end.get());
  if (error == 0) return process;
  wait_for_end(process);
  throw Error(fmt::format("cannot start {}: {}", child.executable.string(), std::strerror(error)),
              hint_for(error, child.executable));
}

}  // namespace dtrain
