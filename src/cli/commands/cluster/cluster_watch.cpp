#include <fmt/format.h>

#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/net/aws.hpp>

#include "cli/command.hpp"
#include "cluster_cloud.hpp"
#include "cluster_look.hpp"
#include "job/tag_sync/sync.hpp"
#include "keep/cluster_budget.hpp"
#include "keep/cluster_keeper.hpp"
#include "keep/watched_job.hpp"

namespace dtrain::cli {
namespace {

using namespace std::chrono_literals;

struct WatchCommand {
  config::ClusterPlace place;
  std::string job_dir;
  int every = 5;  // seconds
  bool once = false, here = false, heal = false, no_head = false;
  double budget = 0;  // US dollars; 0: no limit
};

void bind(config::OptionSet& set, WatchCommand& options) {
  config::bind_cluster(set, options.place);
  set.group("Options");
  set.add("--job-dir", options.job_dir, "DIR",
          "job folder as seen from the head (default the shared folder, or that of the job that the queue runs)")
      .flag_only = true;
  set.add("--here", options.here,
          "the job's coordinator runs on this machine. A coordinator starts this watch itself for an elastic job if "
          "WORKER_LAUNCH_TEMPLATE_ID and ELASTIC_WORKER_TAG are set, as on a cluster's head. Failures are reported and "
          "retried with increasing delays")
      .flag_only = true;
  set.add("--every", options.every, "SECONDS", "seconds between two checks", config::between(1, 3'600));
  set.add("--heal", options.heal,
          fmt::format("also keep the cluster as `up`, `add` and `remove` left it: start workers to replace lost ones, "
                      "of another type, market or zone where there are none, and start the head again. A worker that "
                      "`cluster health` finds impaired for {} minutes, or that AWS is to take back, is replaced: it is "
                      "ended once the new one trains in the elastic job that runs, or after {} minutes. `cluster "
                      "events` shows what was done. One watch at a time does this",
                      cluster::kSickTime / 1min, cluster::kHandoverTime / 1min))
      .flag_only = true;
  bind_budget(
      set, options.budget,
      "with --heal: set the budget of the cluster, as `up --budget` does, in US dollars; 0 for no limit (default "
      "the one that the cluster has)");
  bind_no_head(set, options.no_head);
  set.add("--once", options.once, "check once, act on the result, and exit").flag_only = true;
}

class Watch {
 public:
  Watch(const WatchCommand& options, const config::OptionSet& set, Reporter& reporter)
      : options_(options), set_(set), reporter_(reporter) {}

  ExitCode run() {
    do {
      try {
        look();
        tell_success();
      } catch (const Stopped&) {
        throw;
      } catch (const Error& error) {
        if (options_.once || !may_pass(error)) throw;
        tell_failure(error);
        if (job_) job_->lose();
      }
    } while (!options_.once && pause());
    return ExitCode::ok;
  }

 private:
  void look() {
    if (!cloud_) begin();
    cloud_->begin_again();
    if (options_.heal) heal();
    if (options_.no_head) return;
    job::sync_tags(cloud_->aws(), options_.place.name, job_->job(),
                   [this](const std::string& line) { reporter_.note(line); });
  }

  void begin() {
    cloud_.emplace(options_.place, reporter_);
    const WatchedJob::Place place{options_.place.name, options_.job_dir, options_.here, !options_.no_head};
    job_.emplace(*cloud_, place, reporter_);
  }

  void heal() {
    if (!keeper_) keeper_.emplace(*cloud_, options_.place, *job_, reporter_);
    if (!has_budget_ && set_.chosen(kBudget)) keeper_->set_budget(options_.budget);
    has_budget_ = true;
    keeper_->look();
  }

  // Beside a job no user can correct the command line, but credentials may arrive later. Once they were there, they
  // come back when the user signs in again.
  bool may_pass(const Error& error) const {
    if (options_.here || dynamic_cast<const RemoteError*>(&error) != nullptr) return true;
    return has_looked_ && dynamic_cast<const net::NoCredentials*>(&error) != nullptr;
  }

  // The same words once, however often they would be true.
  void tell_failure(const Error& error) {
    ++failures_;
    if (said_ == error.what()) return;
    said_ = error.what();
    reporter_.warn(fmt::format("the tags of cluster {} cannot be read at the moment: {}{}", options_.place.name, said_,
                               error.hint().empty() ? "" : fmt::format(" ({})", error.hint())));
  }

  void tell_success() {
    if (failures_ > 0) reporter_.note(fmt::format("the tags of cluster {} can be read again", options_.place.name));
    has_looked_ = true;
    failures_ = 0;
    said_.clear();
  }

  bool pause() const {
    return pause_unless_stopped(cluster::pause_between_looks(std::chrono::seconds(options_.every), failures_));
  }

  const WatchCommand& options_;
  const config::OptionSet& set_;
  Reporter& reporter_;
  std::optional<ClusterCloud> cloud_;
  std::optional<WatchedJob> job_;
  std::optional<ClusterKeeper> keeper_;
  bool has_budget_ = false, has_looked_ = false;
  int failures_ = 0;  // in a row
  std::string said_;  // of the last one
};

std::string ended_text(const WatchCommand& options) {
  if (!options.heal) return "the watch has ended: tags no longer change the job, which continues";
  return fmt::format("the watch has ended: lost workers of cluster {} are not replaced{}; its job continues",
                     options.place.name, options.no_head ? "" : ", and tags no longer change the job");
}

ExitCode act(const WatchCommand& options, const config::OptionSet& set, Reporter& reporter) {
  if (options.no_head && !options.heal) {
    throw UsageError("--no-head leaves nothing to watch", "give --heal, or leave --no-head out");
  }
  if (set.chosen(kBudget) && !options.heal) {
    throw UsageError("--budget is kept by --heal", "give --heal too");
  }
  watch_stop_signals();
  ExitCode code = ExitCode::ok;
  try {
    code = Watch(options, set, reporter).run();
  } catch (const Stopped&) {
    if (stop_signal() == 0) throw;
  }
  if (stop_signal() != 0) throw Interrupted(stop_signal(), ended_text(options));
  return code;
}

}  // namespace

std::unique_ptr<Command> make_cluster_watch() {
  auto command = make_command<WatchCommand>(
      "cluster watch", "let instances join or leave the running job by their tags; --heal replaces lost machines", act);
  command->examples = {"dtrain cluster watch demo", "dtrain cluster watch demo --once --job-dir /myEFSvolume/job",
                       "dtrain cluster watch demo --heal"};
  command->see_also = {"cluster events", "cluster add", "cluster remove", "cluster status"};
  return command;
}

}  // namespace dtrain::cli
