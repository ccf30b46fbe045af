#include "running_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>

#include "job/coordinator/start_from_here.hpp"
#include "job/queue/job_queue.hpp"
#include "job/spec/job_client.hpp"
#include "job/spec/wait_for_stop.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
constexpr auto kToLeave = 300s;
constexpr auto kUntilNextLook = 200ms;

// Throws Error where the folder cannot be read: a host must not leave a cluster while its job is out of sight.
bool runs(const JobFolder& folder) {
  if (!is_listed_or_throw(folder.coordinator())) return false;
  try {
    const auto file = read_coordinator(folder);
    return file && !file->over() && answers(*file);
  } catch (const Error&) {  // the record is damaged
    return false;
  }
}

std::vector<elastic::HostLine> listed_in(const JobFolder& folder) {
  return file_exists(folder.hosts()) ? elastic::parse_host_file(read_file(folder.hosts())).hosts
                                     : std::vector<elastic::HostLine>();
}

bool lists(const JobFolder& folder, const std::string& host) {
  return std::ranges::any_of(listed_in(folder), [&](const elastic::HostLine& line) { return line.name == host; });
}

std::optional<RunningJob> attached_job(const cluster::RegisteredCluster& cluster) {
  const JobFolder folder{cluster.shared};
  const bool is_of_cluster =
      std::ranges::any_of(cluster.hosts, [&](const auto& host) { return lists(folder, host.name); });
  if (!is_of_cluster || !runs(folder)) return std::nullopt;
  return RunningJob{fmt::format("the job in {}", cluster.shared), folder};
}

// Whether the host's workers are in the generation now: one that was lost is not.
bool is_member(const JobFolder& folder, const std::string& host) {
  return phase_in(ask_coordinator(folder, Json::object({{"ask", "list"}})), host) == elastic::HostPhase::member;
}

}  // namespace

std::vector<RunningJob> running_jobs(const cluster::RegisteredCluster& cluster) {
  std::vector<RunningJob> all;
  for (const QueuedJob& job : JobQueue(cluster.folder).read()) {
    if (job.spec && job.record.state == JobState::running && runs(job.job_folder()))
      all.push_back({fmt::format("job {}", job.number), job.job_folder()});
  }
  if (auto attached = attached_job(cluster)) all.push_back(std::move(*attached));
  return all;
}

std::optional<std::string> let_join(const RunningJob& job, const cluster::RegisteredHost& host, Reporter& reporter) {
  if (lists(job.folder, host.name)) return std::nullopt;
  try {
    if (!add_and_start(job.folder, host.line(), reporter))
      warn_of_host_file(job.folder, edit_hosts(job.folder, {.add = {host.line()}}), reporter);
    return fmt::format("{} joins {}", host.name, job.name);
  } catch (const UsageError& error) {
    return fmt::format("{} goes on without {}: {}", job.name, host.name, error.what());
  }
}

std::optional<std::string> let_leave(const RunningJob& job, const std::string& host, bool at_once) {
  if (!lists(job.folder, host)) return std::nullopt;
  if (is_member(job.folder, host) && !at_once) {
    ask_coordinator(job.folder, Json::object({{"ask", "drain"}, {"host", host}, {"reason", "it leaves the cluster"}}));
    const auto end = std::chrono::steady_clock::now() + kToLeave;
    while (runs(job.folder) && is_member(job.folder, host)) {
      if (std::chrono::steady_clock::now() > end) {
        throw Error(fmt::format("{} has not left {} in time", host, job.name),
                    "setting 'force' removes it from the cluster anyway");
      }
      std::this_thread::sleep_for(kUntilNextLook);
    }
  }
  if (!runs(job.folder)) return std::nullopt;
  edit_hosts(job.folder, {.remove = {host}, .any_number = true});
  return fmt::format("{} has left {}", host, job.name);
}

void stop_attached_job(const cluster::RegisteredCluster& cluster) {
  const auto job = attached_job(cluster);
  if (!job) return;
  ask_to_stop(job->folder, "`dtrain cluster down`", false);
  wait_until_over(job->folder);
}

}  // namespace dtrain::job
