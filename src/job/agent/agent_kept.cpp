#include "agent_kept.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

#include <dtrain/base/process.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// For what was killed to be gone, so that it can be reaped.
constexpr auto kReapTime = 2s;
constexpr auto kLook = 500ms;
constexpr timespec kWait{.tv_sec = 0, .tv_nsec = 100'000'000};

sigset_t passed_on() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&signals, signal);
  return signals;
}

// A killed process counts as the shell counts it.
int code_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void pass_signals_on(pid_t agent, const sigset_t& signals) {
  while (!has_ended(agent)) {
    if (const int signal = ::sigtimedwait(&signals, nullptr, &kWait); signal > 0) ::kill(agent, signal);
  }
}

void reap_for_a_while() {
  const auto until = std::chrono::steady_clock::now() + kReapTime;
  while (::waitpid(-1, nullptr, WNOHANG) >= 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(5ms);
  }
}

void wait_for_spared(const std::string& mark) {
  while (!processes_marked(mark).empty()) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

std::optional<ExitCode> keep_agent(const std::string& mark, const std::string& spared_mark) {
  const sigset_t signals = passed_on();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  std::fflush(nullptr);  // or both processes would write what is buffered
  const pid_t parent = ::getpid(), agent = ::fork();
  if (agent < 0) throw Error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (agent == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != parent) ::raise(SIGTERM);  // it went before the line above
    return std::nullopt;
  }
  adopt_orphans();
  pass_signals_on(agent, signals);
  const int code = code_of(agent);
  kill_tree(::getpid(), mark, processes_marked(spared_mark));
  wait_for_spared(spared_mark);
  reap_for_a_while();
  return static_cast<ExitCode>(code);
}

}  // namespace dtrain::job
