// The jobs that run on a registered cluster, and how hosts join and leave them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

struct RunningJob {
  std::string name;  // "job 3", "the job in /shared"
  JobFolder folder;
};
// The job of the queue that runs, and the one that a command without --job-dir runs in the shared folder, if any of its
// hosts is the cluster's.
std::vector<RunningJob> running_jobs(const cluster::RegisteredCluster& cluster);

// The host joins the job. A job that takes no hosts goes on as it is. Returns what the user should know of it.
std::optional<std::string> let_join(const RunningJob& job, const cluster::RegisteredHost& host, Reporter& reporter);
// The host leaves the job at its next step; blocks until it has left, unless `at_once`. Throws UsageError for a job
// that cannot lose it, and Error if it has not left in time.
std::optional<std::string> let_leave(const RunningJob& job, const std::string& host, bool at_once);
// Stops the job in the shared folder as `dtrain stop` does, and waits for its end.
void stop_attached_job(const cluster::RegisteredCluster& cluster);

}  // namespace dtrain::job
