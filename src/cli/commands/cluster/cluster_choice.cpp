#include "cluster_choice.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
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
#include <dtrain/cluster/provider.hpp>
#include <dtrain/cluster/spec.hpp>

#include "far_text.hpp"
#include "head_errors.hpp"
#include "job/queue/job_queue.hpp"
#include "job/registered/head.hpp"
#include "ssh_words.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;
constexpr auto kLook = 50ms;

// Nodes are called by their addresses, which stay the same while the numbers of workers change. Jobs go to the queue of
// the cluster.
void choose_nodes(Command& command, const launcher::AgentRegistry& registry) {
  config::Option* queue = command.options.find("job-queue");
  if (queue && !queue->given) queue->given = job::queue_of_cluster(registry.shared_folder, registry.cluster).string();
  for (const char* name : {"DEEPLEARNING_WORKERS_COUNT", "DEEPLEARNING_WORKERS_PATH"}) ::unsetenv(name);
  config::Option* launcher = command.options.find("launcher");
  if (launcher && !launcher->given) launcher->given = "agents";
}

// A job that is given away outlives this command, so the cluster must be there to stay.
void check_submission(const Command& command, const cluster::Provider& provider) {
  const auto said = [&command](const char* name) {
    const config::Option* option = command.options.find(name);
    return option && option->given;
  };
  if (said("detach")) provider.require_queue(said("down-when-done"));
}

// The hosts of a registered cluster are those of its host file, and its head looks after its queue.
void choose_hosts(Command& command, const cluster::RegisteredCluster& cluster, bool only_shown) {
  const auto choose = [&command](const char* name, const std::string& value) {
    config::Option* option = command.options.find(name);
    if (option && !option->given) option->given = value;
  };
  check_submission(command, *cluster::provider_of(cluster));
  choose("job-queue", cluster.folder);
  choose("hostfile", cluster.host_file().string());
  if (cluster.own_key && command.options.find("hostfile")) choose("ssh-config", cluster.ssh_config().string());
  for (const char* name : {"DEEPLEARNING_WORKERS_COUNT", "DEEPLEARNING_WORKERS_PATH"}) ::unsetenv(name);
  if (command.options.find("job-queue") && !only_shown) job::keep_runner(cluster);
}

// The process is told first, for signals.
std::string line_for_head(const std::string& begin, const std::vector<std::string>& given) {
  std::string line = fmt::format("echo \"{}$$\" >&2; {}", kProcessWord, begin);
  for (const std::string& word : given) line.append(" ").append(net::shell_quoted(word));
  return line;
}

// One stream of the program on the head, on the same stream of this process.
class FarStream {
 public:
  FarStream(std::FILE* stream, int descriptor) : stream_(stream), text_(::isatty(descriptor) != 0) {}
  void take(std::string_view bytes) { write(text_.take(bytes, std::chrono::steady_clock::now())); }
  void end() { write(text_.end()); }

 private:
  void write(const std::string& shown) {
    std::fwrite(shown.data(), 1, shown.size(), stream_);
    std::fflush(stream_);
  }

  std::FILE* const stream_;
  FarText text_;
};

// The program on the head.
class FarProgram {
 public:
  explicit FarProgram(const cluster::Provider& provider) : provider_(provider) {}

  // Shows what it writes, also what came before the connection was lost, but not what the user's shell there prints.
  net::SshExit run(net::SshSession& head, net::SshCommand line) {
    line.skip_login_text = true;
    line.on_output = [&](std::string_view text) { output_.take(text); };
    line.on_error = [&](std::string_view text) { error_.take(shown_of(text)); };
    try {
      net::SshExit exit = head.run(line);
      end();
      return exit;
    } catch (...) {
      end();
      throw;
    }
  }

  // Whatever signal comes here goes there, until the token says that the program has ended.
  void follow_signals(const std::stop_token& over) {
    for (int told = 0; !over.stop_requested(); std::this_thread::sleep_for(kLook)) {
      const int heard = stop_signals();
      if (heard == told || process().empty()) continue;
      told = heard;
      try {
        // It fails if the program has just ended.
        std::ignore = provider_.log_in(5s).run({.argv = {"kill", "-TERM", process()}});
      } catch (const Error&) {  // the connection that shows the program is lost too, and says so
      }
    }
  }

 private:
  void end() {
    error_.take(unfinished_error());
    error_.end();
    output_.end();
  }
  std::string unfinished_error() {
    const MutexLock lock(mutex_);
    return errors_.end();
  }
  std::string shown_of(std::string_view text) {
    const MutexLock lock(mutex_);
    return errors_.take(text);
  }
  std::string process() {
    const MutexLock lock(mutex_);
    return errors_.process();
  }

  const cluster::Provider& provider_;
  FarStream output_{stdout, STDOUT_FILENO}, error_{stderr, STDERR_FILENO};
  Mutex mutex_;
  HeadErrors errors_ DTRAIN_GUARDED_BY(mutex_);
};

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

ExitCode run_on_head(Command& command, const std::vector<std::string>& given, Reporter& reporter) {
  const std::string& name = *command.options.find("cluster")->given;
  const std::optional<std::uint16_t> port = served_port(command);
  watch_stop_signals(2);
  const std::unique_ptr<cluster::Provider> provider = cluster::provider_of(name);
  check_submission(command, *provider);
  net::SshSession head = provider->log_in(kPatience);
  const std::string begin =
      provider->prepare_head(head, [&reporter](const std::string& line) { reporter.detail(line); });
  std::optional<Tunnel> tunnel;
  if (port) tunnel.emplace(name, provider->head_target(head), *port);
  FarProgram program(*provider);
  const std::jthread signals([&](const std::stop_token& over) { program.follow_signals(over); });
  const net::SshExit exit = program.run(head, {.shell = line_for_head(begin, given)});
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
  if (const auto headed = cluster::headed_here(*chosen->given)) {
    choose_hosts(command, *headed, only_shown);
  } else if (const auto registry = cluster::registry_of(*chosen->given)) {
    choose_nodes(command, *registry);
  } else if (!only_shown) {
    return run_on_head(command, given, reporter);
  }
  return std::nullopt;
}

}  // namespace dtrain::cli
