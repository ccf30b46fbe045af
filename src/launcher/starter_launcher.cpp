#include <dtrain/launcher/starter_launcher.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/launcher/program_copy.hpp>
#include <dtrain/net/addresses.hpp>

#include "agent_errors.hpp"
#include "starter_command.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr auto kPoll = 50ms;
// Time for agents to end with all of their workers, and for their starters to notice it.
constexpr auto kLastTime = 7s;
// Between SIGTERM and SIGKILL.
constexpr auto kGrace = 3s;
constexpr unsigned kOwnerOnly = 0600;

}  // namespace

// One thread watches the starter processes. start() runs on the caller's thread and adds to `all` under `mutex`; the
// watching thread takes the whole list out while it looks at it, so no lock is held during callbacks, and puts it back.
// `Failed` is called on that thread. The destructor joins the thread first and then works alone. The starters have no
// death signal: if the job survives its coordinator, they must too; otherwise their agents end when the coordinator is
// gone, and the starters with them.
struct StarterLauncher::State {
  struct Running {
    pid_t process = 0;
    std::string host;
    Path join_file, log;
    std::uintmax_t log_size = 0;  // size of the log before the start
    Clock::time_point begun, killed{};
    Failed failed;
    bool has_agent = false;  // an agent took the join file; set by took_join()
    bool took_join() try {
      return has_agent = has_agent || !is_listed_or_throw(join_file);
    } catch (const Error&) {  // the folder cannot be read now: nothing says that the agent is missing
      return true;
    }
  };

  explicit State(StarterLauncherOptions chosen) : options(std::move(chosen)) {
    if (options.agent_command.empty()) {
      options.agent_command = program_by_path();
      options.agent_command.push_back("agent");
    }
  }

  Running start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) const {
    Running running{.host = host.name,
                    .join_file = Path(join.job_folder) / fmt::format("join_{}.json", join.tree),
                    .log = elastic::agent_log(join),
                    .begun = Clock::now(),
                    .failed = std::move(failed)};
    std::vector<std::string> agent = options.agent_command;
    agent.insert(agent.end(), {"--join", running.join_file.string()});
    const auto granted = options.gpus.find(host.host);
    const StarterCall call{.starter = options.starter,
                           .program = options.program,
                           .as_root = ::geteuid() == 0,
                           .own_host = host_name(),
                           .gpus = granted == options.gpus.end() ? 0 : granted->second};
    Spawn child = spawn_of(starter_command(call, host, agent));
    make_folder(running.log.parent_path());
    const FileDescriptor log = open_log(running.log);
    running.log_size = std::filesystem::file_size(running.log);
    child.environment = options.environment;
    child.folder = "/";  // the starter changes to its own folder on the host too
    child.output = child.error = log.get();
    child.group = Spawn::Group::session;
    write_file_atomic(running.join_file, elastic::to_json(with_own_addresses(join, options.announce)).dump(),
                      kOwnerOnly);
    try {
      running.process = spawn(child);
    } catch (const Error&) {
      forget(running);
      throw;
    }
    return running;
  }

  static void forget(const Running& running) {
    std::error_code ignored;
    std::filesystem::remove(running.join_file, ignored);
  }

  void work(const std::stop_token& stop) {
    for (; !stop.stop_requested(); sleep_unless_stopped(stop, kPoll)) {
      std::vector<Running> looked_at = take_all();
      look_at(looked_at);
      const MutexLock lock(mutex);
      std::ranges::move(looked_at, std::back_inserter(all));
    }
  }

  std::vector<Running> take_all() {
    const MutexLock lock(mutex);
    return std::exchange(all, {});
  }

  // Removes the starters that ended.
  void look_at(std::vector<Running>& starters) const {
    std::erase_if(starters, [this](Running& running) {
      if (has_ended(running.process)) {
        const std::string end = reap(running);
        if (running.failed) running.failed(end);
        return true;
      }
      end_if_late(running);
      return false;
    });
  }

  std::string reap(const Running& running) const {
    const ProcessEnd end = wait_for_end(running.process);
    forget(running);
    const std::string words = errors_since(running.log, running.log_size);
    return fmt::format("{} {}{}{}", options.program.filename().string(), describe_end(end), words.empty() ? "" : ": ",
                       words);
  }

  void end_if_late(Running& running) const {
    const auto now = Clock::now();
    if (running.killed != Clock::time_point{}) {
      if (now - running.killed > kGrace) kill_session(running.process, {});
      return;
    }
    if (now - running.begun < options.start_deadline || running.took_join()) return;
    forget(running);
    const std::string words = errors_since(running.log, running.log_size);
    std::exchange(running.failed, nullptr)(
        fmt::format("{} did not start its agent within {} s{}{}", options.program.filename().string(),
                    std::chrono::duration_cast<std::chrono::seconds>(options.start_deadline).count(),
                    words.empty() ? "" : ": ", words));
    end(running);
  }

  static void end(Running& running) {
    ::kill(-running.process, SIGTERM);
    running.killed = Clock::now();
  }

  // No `Failed` is called from here on.
  void end_all() {
    std::vector<Running> left = take_all();
    for (Running& running : left) {
      running.failed = nullptr;
      if (running.took_join()) continue;
      forget(running);
      end(running);
    }
    if (options.job_goes_on && options.job_goes_on()) return;
    if (gone_within(kLastTime, left)) return;
    for (Running& running : left) end(running);
    if (gone_within(kGrace, left)) return;
    for (const Running& running : left) {
      kill_session(running.process, {});
      wait_for_end(running.process);
    }
  }

  bool gone_within(std::chrono::milliseconds time, std::vector<Running>& left) const {
    const auto until = Clock::now() + time;
    for (look_at(left); !left.empty() && Clock::now() < until; look_at(left)) std::this_thread::sleep_for(10ms);
    return left.empty();
  }

  StarterLauncherOptions options;
  Mutex mutex;
  std::vector<Running> all DTRAIN_GUARDED_BY(mutex);
  std::jthread thread;
};

StarterLauncher::StarterLauncher(StarterLauncherOptions options) : state_(std::make_unique<State>(std::move(options))) {
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
}

StarterLauncher::~StarterLauncher() {
  state_->thread = {};
  state_->end_all();
}

void StarterLauncher::start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) {
  try {
    State::Running running = state_->start(host, join, std::move(failed));
    const MutexLock lock(state_->mutex);
    state_->all.push_back(std::move(running));
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw RemoteError(fmt::format("its agent does not start: {}", error.what()), error.hint());
  }
}

Path find_program(const std::string& name, const std::string& folders, const std::string& hint) {
  // The starter runs in another folder than this process.
  if (const auto program = find_in_path(name, folders)) return std::filesystem::absolute(*program);
  throw UsageError(fmt::format("there is no program {} in PATH ({})", name, folders), hint);
}

StarterProgram find_mpirun(const std::string& folders) {
  const Path program = find_program("mpirun", folders,
                                    "install Open MPI (Debian: openmpi-bin) or MPICH here and on the hosts, or load "
                                    "its module; --launcher ssh needs neither");
  const ProgramAnswer answer = ask_program({program.string(), "--version"});
  return {kind_of_mpirun(answer.output + answer.errors), program};
}

std::vector<std::string> program_by_path() { return ProgramCopy().same_path(); }

std::vector<std::string> variables_of_starters(const std::vector<std::string>& environment) {
  constexpr std::array<std::string_view, 23> kTheirs = {
      "OMPI_",          "PMIX_",          "PMI_",          "ORTE_",        "PRTE_",         "HYDRA_",
      "HYDI_",          "MPI_LOCAL",      "SLURM_PROCID=", "SLURM_LOCAL",  "SLURM_NODEID=", "SLURM_GTIDS=",
      "SLURM_TASK_PID", "SLURM_NTASKS",   "SLURM_NPROCS=", "SLURM_STEP",   "SLURM_NNODES=", "SLURM_TASKS_PER_NODE=",
      "SLURM_SRUN_",    "SLURM_CPU_BIND", "SLURM_DISTRI",  "SLURM_LAUNCH", "SRUN_DEBUG="};
  std::vector<std::string> names;
  for (const std::string& variable : environment) {
    if (std::ranges::any_of(kTheirs, [&](std::string_view lead) { return variable.starts_with(lead); }))
      names.push_back(variable.substr(0, variable.find('=')));
  }
  return names;
}

std::vector<std::string> without_step_options(std::vector<std::string> environment) {
  constexpr std::array<std::string_view, 7> kOptions = {
      "SLURM_NTASKS_PER_", "SLURM_GPUS=",          "SLURM_GPUS_PER_",    "SLURM_TRES_PER_TASK=",
      "SLURM_GPU_BIND=",   "SLURM_CPUS_PER_TASK=", "SRUN_CPUS_PER_TASK="};
  std::erase_if(environment, [&](const std::string& variable) {
    return std::ranges::any_of(kOptions, [&](std::string_view lead) { return variable.starts_with(lead); });
  });
  return environment;
}

std::vector<std::string> without_secrets(std::vector<std::string> environment) {
  std::erase_if(environment, [](const std::string& variable) {
    return variable.starts_with("AWS_ACCESS_KEY_ID=") || variable.starts_with("AWS_SECRET_ACCESS_KEY=") ||
           variable.starts_with("AWS_SESSION_TOKEN=");
  });
  return environment;
}

elastic::AgentOrder with_own_addresses(elastic::AgentOrder join, const std::string& announce) {
  if (join.address != net::kAnyAddress) return join;
  if (!announce.empty()) {
    join.address = announce;
  } else {
    join.more_addresses = net::own_addresses();
    join.address = join.more_addresses.front();
    join.more_addresses.erase(join.more_addresses.begin());
  }
  return join;
}

}  // namespace dtrain::launcher
