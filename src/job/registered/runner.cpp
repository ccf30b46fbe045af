#include <fmt/format.h>

#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "cluster_events.hpp"
#include "head.hpp"
#include "job/queue/job_queue.hpp"
#include "job/queue/queue_runner.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kBetweenCounts = 5s;

// The cluster's budget, counted by the prices that its user gave. One thread: that of the runner.
class BudgetWatch {
 public:
  explicit BudgetWatch(Path folder) : folder_(std::move(folder)) {}

  // Why no job may run; empty: there is no budget, or it is not spent. Throws Error while the cluster's record cannot
  // be read.
  std::string hold() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_count_) return hold_;
    const auto cluster = cluster::read_cluster(folder_);
    next_count_ = now + kBetweenCounts;
    hold_.clear();
    if (!cluster || !cluster->budget) return hold_;
    const auto time =
        std::chrono::duration_cast<cluster::UnixTime>(std::chrono::system_clock::now().time_since_epoch());
    const cluster::Spending spending = cluster::spending_of(*cluster, time);
    const cluster::BudgetState state = cluster::budget_state(*cluster->budget, spending.dollars);
    const std::string text = cluster::budget_text(*cluster->budget, spending) + " are spent";
    if (state == cluster::BudgetState::spent) hold_ = text;
    if (state != state_ && state != cluster::BudgetState::ok) append_event(folder_, text);
    state_ = state;
    return hold_;
  }

 private:
  const Path folder_;
  std::string hold_{};
  cluster::BudgetState state_ = cluster::BudgetState::ok;
  std::chrono::steady_clock::time_point next_count_{};
};

}  // namespace

void keep_runner(const cluster::RegisteredCluster& cluster) {
  if (JobQueue(cluster.folder).has_runner()) return;
  std::vector<std::string> command = launcher::program_by_path();
  command.insert(command.end(), {"agent", "--jobs-of", cluster.name});
  const FileDescriptor log = open_log(Path(cluster.folder) / "runner.log", 0600);
  Spawn child = spawn_of(std::move(command));
  child.environment = own_environment();
  child.folder = cluster.shared;
  child.output = child.error = log.get();
  child.group = Spawn::Group::session;
  spawn(child);  // it waits for the lock where another one was faster, and is reaped by init
}

void run_registered_queue(const std::string& name, const std::function<void(const std::string&)>& on_note) {
  const auto cluster = cluster::headed_here(name);
  if (!cluster) throw UsageError(fmt::format("this machine is not the head of a cluster {}", name));
  const Path folder = cluster->folder;
  if (JobQueue(folder).has_runner()) return;
  BudgetWatch budget(folder);
  run_queue({.queue = folder,
             .on_note =
                 [&](const std::string& line) {
                   on_note(line);
                   if (const auto problem = attempt([&] { append_event(folder, line); })) on_note(problem->what());
                 },
             .hold = [&budget] { return budget.hold(); },
             .is_over = [folder] { return !is_listed_or_throw(folder / "cluster.json"); }});
}

}  // namespace dtrain::job
