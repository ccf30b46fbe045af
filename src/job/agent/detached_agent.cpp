#include "detached_agent.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <memory>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
// Time for killed processes to become reapable.
constexpr auto kReapTime = 2s;

void redirect_output(const Path& log) {
  try {
    redirect_streams(open_log(log));
  } catch (const Error&) {
    redirect_streams({});
  }
}

[[noreturn]] void supervise(pid_t agent, const std::string& mark, const std::string& spared_mark) {
  redirect_streams({});
  const int code = wait_for_end(agent).shell_code();
  kill_tree(::getpid(), mark, processes_marked(spared_mark));
  reap_children_for(kReapTime);
  ::_exit(code);
}

}  // namespace

DetachedAgent detach_agent(const std::string& mark, const std::string& spared_mark, const Path& log) {
  Pipe pipe = make_pipe();
  auto write_end = std::make_shared<FileDescriptor>(std::move(pipe.write_end));

  const pid_t supervisor = fork_process();
  if (supervisor > 0) {
    *write_end = FileDescriptor();
    const bool joined = wait_for_byte(pipe.read_end);
    return {.report_joined = {},
            .outcome = joined ? ExitCode::ok : static_cast<ExitCode>(wait_for_end(supervisor).shell_code())};
  }
  ::setsid();
  adopt_orphans();
  const pid_t agent = fork_process();
  if (agent > 0) {
    *write_end = FileDescriptor();
    supervise(agent, mark, spared_mark);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  return {.report_joined =
              [write_end, log] {
                redirect_output(log);
                if (*write_end && ::write(write_end->get(), "j", 1) == 1) *write_end = FileDescriptor();
              },
          .outcome = {}};
}

}  // namespace dtrain::job
