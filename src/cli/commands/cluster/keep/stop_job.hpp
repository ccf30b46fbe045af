// The job on a cluster is stopped before its machines are.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"
#include "job/tag_sync/tag_sync_job.hpp"

namespace dtrain::cli {

// "the job was stopped with a checkpoint"
std::string stopped_text(job::StopOutcome stop);
// Stops the job on a cluster by its head, and returns that text. Throws as ClusterHead(), and Error if it goes on.
std::string stop_job_on(const cluster::Fleet& fleet, const std::string& why);
// Cancels all jobs of the cluster's queue and stops the job that a user runs there. What cannot be stopped is a
// warning.
void end_jobs_on(const cluster::Fleet& fleet, Reporter& reporter);

}  // namespace dtrain::cli
