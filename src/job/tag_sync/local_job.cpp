#include <algorithm>
#include <chrono>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/cluster/user_data.hpp>
#include <dtrain/launcher/agent_registry.hpp>

#include "job/queue/job_queue.hpp"
#include "job/spec/job_client.hpp"
#include "job_answers.hpp"
#include "tag_sync_job.hpp"

namespace dtrain::job {
namespace {

constexpr std::chrono::seconds kRegistryDeadline{30};

std::set<std::string> running_nodes(const cluster::Fleet& fleet) {
  std::set<std::string> found;
  for (const cluster::Node& node : fleet.nodes) {
    if (node.state == "running") found.insert(node.private_ip);
  }
  return found;
}

// The job that a user runs in the shared folder, or the one that the queue runs: one that takes no --job-dir may be
// either.
class LocalTagSyncJob final : public TagSyncJob {
 public:
  LocalTagSyncJob(const Path& folder, const std::string& cluster)
      : chosen_(folder), registry_(cluster::registry_of(cluster)) {
    if (chosen_.empty() && registry_) queue_.emplace(queue_of_cluster(registry_->shared_folder, registry_->cluster));
  }

  cluster::TagSyncView look(const cluster::Fleet& fleet) override {
    cluster::TagSyncView view;
    if (registry_) view.nodes = registered(fleet);
    view.ready = registry_ ? connected_nodes(view.nodes) : running_nodes(fleet);
    if (const auto job = find_job()) add_host_states(*job, view);
    if (file_exists(folder_.hosts())) view.listed = names_in_host_file(read_file(folder_.hosts()));
    if (file_exists(folder_.log())) view.log = cluster::last_words(read_file(folder_.log()));
    return view;
  }
  Path folder() const override { return folder_.path; }
  void add(const std::string& host) override { edit_hosts(folder_, {.add = {host}}); }
  void remove(const std::string& host) override { edit_hosts(folder_, {.remove = {host}}); }
  StopOutcome stop(const std::string& why, const cluster::Fleet& fleet) override {
    announce(fleet);
    StopOutcome stop = StopOutcome::no_job;
    for (const JobFolder& folder : folders()) stop = std::max(stop, stop_job_in(folder, why));
    return stop;
  }

 private:
  // Where a job of the cluster may run.
  std::vector<JobFolder> folders() {
    if (!chosen_.empty()) return {{chosen_}};
    std::vector<JobFolder> found{{registry_ && !registry_->shared_folder.empty() ? registry_->shared_folder : "."}};
    if (!queue_) return found;
    for (const QueuedJob& job : queue_->read()) {
      if (job.spec && job.record.state == JobState::running) found.push_back(job.job_folder());
    }
    return found;
  }

  // The hosts of the job that runs, which is then that of folder_; nullopt: none does, or it has just ended.
  std::optional<Json> find_job() {
    const std::vector<JobFolder> all = folders();
    for (const JobFolder& folder : all) {
      folder_ = folder;
      if (auto job = job_list()) return job;
    }
    folder_ = all.back();  // that of the queue: its job may be about to begin, or to go on
    return std::nullopt;
  }
  std::optional<Json> job_list() const {
    const auto file = read_coordinator(folder_);
    if (!file || file->over() || !answers(*file)) return std::nullopt;
    try {
      return ask_coordinator(folder_, list_question());
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // A head that is away holds no queue, and must not keep the job from being saved.
  void announce(const cluster::Fleet& fleet) const {
    try {
      if (registry_) launcher::ask_registry(*registry_, cluster::announcement(fleet), kRegistryDeadline);
    } catch (const RemoteError&) {
    }
  }

  Json registered(const cluster::Fleet& fleet) const {
    launcher::ask_registry(*registry_, cluster::announcement(fleet), kRegistryDeadline);
    return launcher::ask_registry(*registry_, list_question(), kRegistryDeadline);
  }

  const Path chosen_;  // by the user; empty: neither
  const std::optional<launcher::AgentRegistry> registry_;
  std::optional<JobQueue> queue_;
  JobFolder folder_{};
};

}  // namespace

std::unique_ptr<TagSyncJob> make_local_job(const Path& job_folder, const std::string& cluster) {
  return std::make_unique<LocalTagSyncJob>(job_folder, cluster);
}

}  // namespace dtrain::job
