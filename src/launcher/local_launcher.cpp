#include <dtrain/launcher/local_launcher.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <stop_token>
#include <thread>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/elastic/agent.hpp>

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;
constexpr auto kPoll = 50ms;
// Time for agents to end by themselves with their workers: more than their own grace.
constexpr auto kLastTime = 3s;
// Time for killed processes to become reapable.
constexpr auto kReapTime = 2s;

// Whether a killed process is gone. A process whose parent is still dying becomes a child of this process only
// afterwards.
bool is_gone(pid_t process) {
  const pid_t reaped = ::waitpid(process, nullptr, WNOHANG);
  return reaped == process || (reaped < 0 && ::kill(process, 0) != 0);
}

// Ends an agent, or what a killed agent left behind, found by its session and its mark.
void end_and_reap(pid_t agent, const std::string& mark) {
  std::vector<pid_t> killed = kill_session(agent, mark);
  const auto until = std::chrono::steady_clock::now() + kReapTime;
  bool left = true;
  while (left && std::chrono::steady_clock::now() < until) {
    std::erase_if(killed, is_gone);
    left = reap_session(agent) || !killed.empty();
    if (left) std::this_thread::sleep_for(5ms);
  }
}

}  // namespace

// One thread starts and watches all agents, and lives as long as the launcher: a death signal is sent when the thread
// that started the process ends. start() hands it a task under `mutex` and waits for the result; `agents` belongs to
// that thread alone. When the launcher ends, the thread ends the agents and reaps what they left. A failed start is
// thrown by start(); `Failed` is never called. Processes of an inherited agent, which is no child, are found by its
// mark alone; they are ended when another agent takes its place, or with the launcher.
struct LocalLauncher::State {
  struct Agent {
    pid_t process = 0;
    std::string mark;
  };
  using Start = std::packaged_task<void()>;

  explicit State(LocalLauncherOptions chosen) : options(std::move(chosen)) {
    for (const elastic::Voter& agent : options.inherited) inherited[agent.host].insert(mark_of(agent));
  }

  static std::string mark_of(const elastic::Voter& agent) {
    elastic::AgentOrder order;
    order.tree = agent.tree;
    return elastic::tree_mark(order);
  }

  bool agents_outlive() const { return options.job_goes_on != nullptr; }

  Agent start_agent(const elastic::AgentOrder& join) {
    if (const auto earlier = inherited.extract(join.host)) {
      for (const std::string& mark : earlier.mapped()) kill_marked(mark);
    }
    const FileDescriptor input = memory_file(elastic::to_json(join).dump());
    const FileDescriptor log = agents_outlive() ? log_of(join) : FileDescriptor();
    Spawn child = spawn_of(options.command);
    child.environment = own_environment();
    child.input = input.get();
    child.error = agents_outlive() ? log.get() : STDERR_FILENO;
    child.group = Spawn::Group::session;
    // SIGTERM, not SIGKILL: the agent must live to end what its workers started.
    child.death_signal = agents_outlive() ? 0 : SIGTERM;
    return {spawn(child), elastic::tree_mark(join)};
  }

  // An agent that outlives this process must not hold its terminal or pipe. It runs without a log where that cannot be
  // written.
  static FileDescriptor log_of(const elastic::AgentOrder& join) {
    try {
      return open_log(elastic::agent_log(join));
    } catch (const Error&) {
      return {};
    }
  }

  void work(std::stop_token stop) {
    while (!stop.stop_requested()) {
      for (Start& start : wait_for_starts(stop)) start();
      remove_ended();
    }
    if (!agents_outlive() || !options.job_goes_on()) end_all();
  }

  std::vector<Start> wait_for_starts(std::stop_token stop) {
    const MutexLock lock(mutex);
    wake.wait_for(mutex, stop, kPoll, [this]() DTRAIN_REQUIRES(mutex) { return !starts.empty(); });
    return std::exchange(starts, {});
  }

  // An agent ends its whole process tree, unless it was killed itself.
  void remove_ended() {
    std::erase_if(agents, [](const Agent& agent) {
      if (!has_ended(agent.process)) return false;
      end_and_reap(agent.process, agent.mark);
      return true;
    });
  }

  void end_all() {
    for (const Agent& agent : agents) ::kill(agent.process, SIGTERM);
    const auto until = std::chrono::steady_clock::now() + kLastTime;
    for (remove_ended(); (!agents.empty() || inherited_work()) && std::chrono::steady_clock::now() < until;
         remove_ended()) {
      std::this_thread::sleep_for(10ms);
    }
    for (const Agent& agent : agents) {
      kill_tree(agent.process, agent.mark);
      end_and_reap(agent.process, agent.mark);
    }
    for (const auto& [host, marks] : inherited) {
      for (const std::string& mark : marks) kill_marked(mark);
    }
  }

  bool inherited_work() const {
    return std::ranges::any_of(inherited, [](const auto& entry) {
      return std::ranges::any_of(entry.second, [](const auto& mark) { return !processes_marked(mark).empty(); });
    });
  }

  LocalLauncherOptions options;
  // Used by the thread alone.
  std::vector<Agent> agents;
  std::map<std::string, std::set<std::string>> inherited;  // marks, by host
  Mutex mutex;
  StoppableCondVar wake;
  std::vector<Start> starts DTRAIN_GUARDED_BY(mutex);
  std::jthread thread;
};

LocalLauncher::LocalLauncher(LocalLauncherOptions options) {
  if (options.command.empty()) {
    options.command = own_command();
    options.command.push_back("agent");
  }
  adopt_orphans();
  state_ = std::make_unique<State>(std::move(options));
  state_->thread = std::jthread([state = state_.get()](std::stop_token stop) { state->work(stop); });
}

LocalLauncher::~LocalLauncher() = default;

void LocalLauncher::start(const elastic::HostLine&, const elastic::AgentOrder& join, Failed) {
  State::Start start([state = state_.get(), join] { state->agents.push_back(state->start_agent(join)); });
  std::future<void> started = start.get_future();
  {
    const MutexLock lock(state_->mutex);
    state_->starts.push_back(std::move(start));
  }
  state_->wake.notify_one();
  try {
    started.get();
  } catch (const Error& error) {
    throw Error(fmt::format("its agent does not start: {}", error.what()), error.hint());
  }
}

}  // namespace dtrain::launcher
