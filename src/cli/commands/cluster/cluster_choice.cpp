#include "cluster_choice.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stop_token>
#include <thread>
#include <tuple>

#include <dtrain/base/mutex.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/spec.hpp>
#include <dtrain/cluster/user_data.hpp>
#include <dtrain/cluster/wish.hpp>

#include "cluster_cloud.hpp"
#include "job/queue/job_queue.hpp"
#include "printable.hpp"
#include "ssh_words.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;
constexpr auto kLook = 50ms;
constexpr std::string_view kPidWord = "dtrain-process ";

// Nodes are called by their addresses, which stay the same while the numbers of workers change. Jobs go to the queue of
// the cluster.
void choose_nodes(Command& command, const launcher::AgentRegistry& registry) {
  config::Option* queue = command.options.find("job-queue");
  if (queue && !queue->given) queue->given = job::queue_of_cluster(registry.shared_folder, registry.cluster).string();
  for (const char* name : {"DEEPLEARNING_WORKERS_COUNT", "DEEPLEARNING_WORKERS_PATH"}) ::unsetenv(name);
  config::Option* launcher = command.options.find("launcher");
  if (launcher && !launcher->given) launcher->given = "agents";
}

// In the shared folder where there is one, so that names of files mean the same on every node. Its process is told
// first, for signals.
std::string line_for_head(const std::vector<std::string>& given) {
  std::string line = fmt::format(
      "echo \"{}$$\" >&2; . /etc/profile.d/deeplearning.sh; cd \"${{EFS_MOUNT:-$HOME}}\"; exec {}/bundle/dtrain",
      kPidWord, cluster::kNodeFolder);
  for (const std::string& word : given) line.append(" ").append(net::shell_quoted(word));
  return line;
}

// The program on the head: its process number comes as the first line of what it says on stderr.
class FarProgram {
 public:
  explicit FarProgram(cluster::Fleet fleet) : fleet_(std::move(fleet)) {}

  void take_error(std::string_view text) {
    if (known_) return pass_on(text);
    begin_ += text;
    const std::size_t end = begin_.find('\n');
    if (end == begin_.npos) return;
    const MutexLock lock(mutex_);
    known_ = true;
    process_ = begin_.substr(kPidWord.size(), end - kPidWord.size());
    pass_on(std::string_view(begin_).substr(end + 1));
  }

  // Whatever signal comes here goes there, until the token says that the program has ended.
  void follow_signals(const std::stop_token& over) {
    for (int told = 0; !over.stop_requested(); std::this_thread::sleep_for(kLook)) {
      const int heard = stop_signals();
      if (heard == told || process().empty()) continue;
      told = heard;
      try {
        // It fails if the program has just ended.
        std::ignore = cluster::ClusterHead(fleet_, 5s).session().run({.argv = {"kill", "-TERM", process()}});
      } catch (const Error&) {  // the connection that shows the program is lost too, and says so
      }
    }
  }

 private:
  static void pass_on(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }
  std::string process() {
    const MutexLock lock(mutex_);
    return process_;
  }

  const cluster::Fleet fleet_;
  std::string begin_;
  bool known_ = false;
  Mutex mutex_;
  std::string process_ DTRAIN_GUARDED_BY(mutex_);
};

cluster::Fleet fleet_of(const std::string& name) {
  net::AwsCalls aws;
  cluster::Fleet fleet = cluster::read_fleet(aws, name);
  require_there(fleet, aws);
  return fleet;
}

// The port of a command that serves a page; nullopt: it serves none.
std::optional<std::uint16_t> served_port(Command& command) {
  if (command.path != "board") return std::nullopt;
  const config::Option& port = *command.options.find("port");
  const auto number = parse_integer(port.given.value_or(port.show()));
  if (!number || *number <= 0 || *number > std::numeric_limits<std::uint16_t>::max())
    throw UsageError(fmt::format("--port {}: the same port is taken here and on the head", port.given.value_or("")),
                     "name a port that is free on both");
  return static_cast<std::uint16_t>(*number);
}

// A job that is given away outlives this command, so the cluster must be there to stay. What the account shows is known
// here, where the keys are.
void check_submission(const Command& command, const cluster::Fleet& fleet) {
  const auto said = [&command](const char* name) {
    const config::Option* option = command.options.find(name);
    return option && option->given;
  };
  if (!said("detach")) return;
  if (fleet.on_emr()) {
    throw UsageError(fmt::format("cluster {} is one of Amazon EMR, whose head has no queue of jobs", fleet.name),
                     "leave --detach out");
  }
  if (!fleet.launch_template) {
    throw UsageError(
        fmt::format("cluster {} takes no jobs: it is being removed, or was not made completely", fleet.name),
        fmt::format("dtrain cluster up {} makes it again", fleet.name));
  }
  const cluster::Lease lease = cluster::tagged_lease(fleet);
  if (said("down-when-done") && cluster::lease_state(lease, "", unix_now()) == cluster::LeaseState::taken) {
    throw UsageError(fmt::format("--down-when-done: {} keeps cluster {}, and would start its machines again",
                                 lease.holder, fleet.name),
                     "end `dtrain cluster watch --heal` first, or leave --down-when-done out");
  }
}

ExitCode run_on_head(Command& command, const std::vector<std::string>& given, Reporter& reporter) {
  const std::string& name = *command.options.find("cluster")->given;
  const std::optional<std::uint16_t> port = served_port(command);
  watch_stop_signals(2);
  const cluster::Fleet fleet = fleet_of(name);
  check_submission(command, fleet);
  cluster::ClusterHead head(fleet, kPatience, [&reporter](const std::string& line) { reporter.detail(line); });
  if (!head.has_program()) {
    throw UsageError(fmt::format("cluster {} is not ready", name),
                     fmt::format("dtrain cluster up {} completes it", name));
  }
  head.announce(fleet);
  std::optional<Tunnel> tunnel;
  if (port) {
    const std::string login = fmt::format("{}@{}", head.session().user(), cluster::address_of(*fleet.head()));
    tunnel.emplace(name, login, *port);
  }
  FarProgram program(fleet);
  net::SshCommand line{.shell = line_for_head(given)};
  line.on_output = [](std::string_view text) {
    const std::string shown = printable_on(STDOUT_FILENO, text);
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
  };
  line.on_error = [&](std::string_view text) { program.take_error(text); };
  const std::jthread signals([&](const std::stop_token& over) { program.follow_signals(over); });
  const net::SshExit exit = head.session().run(line);
  if (!exit.signal.empty()) throw Error(fmt::format("dtrain was killed by SIG{} on the head", exit.signal));
  return static_cast<ExitCode>(exit.code);
}

}  // namespace

std::optional<ExitCode> run_on_cluster(Command& command, const std::vector<std::string>& given, bool only_shown,
                                       Reporter& reporter) {
  const config::Option* chosen = command.options.find("cluster");
  const bool is_for_jobs =
      command.options.find("job-dir") || command.options.find("job-queue") || command.path == "board";
  if (!chosen || !chosen->given || !is_for_jobs) return std::nullopt;
  cluster::check_cluster_name(*chosen->given);
  const auto registry = cluster::registry_of(*chosen->given);
  if (!registry) {
    if (only_shown) return std::nullopt;
    return run_on_head(command, given, reporter);
  }
  choose_nodes(command, *registry);
  return std::nullopt;
}

}  // namespace dtrain::cli
