#include "supervised_agent.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// Time for killed processes to become reapable.
constexpr auto kReapTime = 2s;
constexpr auto kAgentLook = 500ms;
constexpr timespec kWait{.tv_sec = 0, .tv_nsec = 100'000'000};

void pass_signals_on(pid_t agent, const sigset_t& signals) {
  while (!has_ended(agent)) {
    if (const int signal = ::sigtimedwait(&signals, nullptr, &kWait); signal > 0) ::kill(agent, signal);
  }
}

void wait_for_spared(const std::string& mark) {
  while (!processes_marked(mark).empty()) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::this_thread::sleep_for(kAgentLook);
  }
}

}  // namespace

std::optional<ExitCode> supervise_agent(const std::string& mark, const std::string& spared_mark) {
  const sigset_t signals = all_stop_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t parent = ::getpid(), agent = fork_process();
  if (agent == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != parent) ::raise(SIGTERM);  // the parent ended before the line above
    return std::nullopt;
  }
  adopt_orphans();
  pass_signals_on(agent, signals);
  const int code = wait_for_end(agent).shell_code();
  kill_tree(::getpid(), mark, processes_marked(spared_mark));
  wait_for_spared(spared_mark);
  reap_children_for(kReapTime);
  return static_cast<ExitCode>(code);
}

}  // namespace dtrain::job
