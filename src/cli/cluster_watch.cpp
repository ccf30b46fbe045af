#include <fmt/format.h>

#include <chrono>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/launch/agent_registry.hpp>

#include "cluster_bridge.hpp"
#include "cluster_options.hpp"
#include "command.hpp"
#include "signals.hpp"

namespace dtrain::cli {
namespace {

struct WatchCommand {
  ClusterPlace place;
  std::string job_dir;
  int every = 5;  // seconds
  bool once = false;
};

void bind(OptionSet& set, WatchCommand& options) {
  bind_cluster(set, options.place);
  set.group("How");
  set.add("--job-dir", options.job_dir, "DIR", "of the job, as the head sees it; else the shared folder").flag_only =
      true;
  set.add("--every", options.every, "SECONDS", "between two looks", between(1, 3'600));
  set.add("--once", options.once, "look once, do what follows, and end").flag_only = true;
}

bool is_on_head(const std::string& cluster) {
  const auto registry = launch::read_agent_registry(launch::kAgentRegistryFile);
  return registry && registry->cluster == cluster;
}

// What it takes to see the job, found again when it was lost.
class Watch {
 public:
  Watch(const WatchCommand& options, Console& console)
      : options_(options), console_(console), cloud_(options.place, console) {}

  ExitCode run() {
    do {
      try {
        look();
      } catch (const RemoteError& error) {
        if (options_.once) throw;
        console_.warning(error.what());
        job_.reset();
        head_.reset();
      }
    } while (!options_.once && pause());
    return ExitCode::ok;
  }

 private:
  void look() {
    if (!job_) connect();
    bridge_round(cloud_.aws(), options_.place.name, *job_, [this](const std::string& line) { console_.log(line); });
  }

  void connect() {
    if (is_on_head(options_.place.name)) {
      job_ = make_near_job(options_.job_dir.empty() ? "." : options_.job_dir);
      return;
    }
    const cluster::Fleet fleet = cluster::read_fleet(cloud_.aws(), options_.place.name);
    head_.emplace(fleet, std::chrono::seconds(0));
    job_ = make_far_job(*head_, options_.job_dir);
  }

  bool pause() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(options_.every);
    while (stop_signal() == 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return stop_signal() == 0;
  }

  const WatchCommand& options_;
  Console& console_;
  ClusterCloud cloud_;
  std::optional<ClusterHead> head_;
  std::unique_ptr<BridgeJob> job_;
};

ExitCode act(const WatchCommand& options, const OptionSet&, Console& console) {
  const ExitCode code = Watch(options, console).run();
  if (stop_signal() != 0) throw Interrupted(stop_signal(), "nobody watches the tags any more; the job goes on");
  return code;
}

}  // namespace

std::unique_ptr<Command> make_cluster_watch() {
  auto command = make_command<WatchCommand>(
      "cluster watch", "let machines join and leave the running job as their tags say, and end those that left", act);
  command->examples = {"dtrain cluster watch demo", "dtrain cluster watch demo --once --job-dir /myEFSvolume/job"};
  command->see_also = {"cluster add", "cluster remove", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
