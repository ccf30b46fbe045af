// The job of a cluster, as the tags of its instances change it: from a machine of the cluster, or over ssh.
#pragma once

#include <memory>
#include <string>

#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/tag_sync.hpp>

#include "job/spec/wait_for_stop.hpp"

namespace dtrain::job {

// The job, on this machine, or on the head over ssh.
class TagSyncJob {
 public:
  virtual ~TagSyncJob() = default;
  // Also announces the cluster's instances to the head.
  virtual cluster::TagSyncView look(const cluster::Fleet& fleet) = 0;
  virtual Path folder() const = 0;                // of the job that look() saw
  virtual void add(const std::string& host) = 0;  // throws Error if the job refuses
  virtual void remove(const std::string& host) = 0;
  // Announces the fleet, whose tags may hold the queue. Then stops the job with a checkpoint, and waits for its end. A
  // job of the queue stays there and is resumed later. Throws Error if it goes on, or may run and cannot be asked.
  virtual StopOutcome stop(const std::string& why, const cluster::Fleet& fleet) = 0;
};

// `job_folder`: empty: the shared folder, or that of the job that the queue runs. On a machine that is no node of that
// cluster, any running instance may join, and an empty folder is the working directory.
std::unique_ptr<TagSyncJob> make_local_job(const Path& job_folder, const std::string& cluster);
// `job_folder`: path on the head; empty: the shared folder, or that of the job that the queue runs. The head must
// outlive the job.
std::unique_ptr<TagSyncJob> make_remote_job(cluster::ClusterHead& head, const std::string& job_folder);

// Cancels all jobs of the cluster's queue that are not over, those that wait first, and waits until they are. Throws
// Error if the head cannot be asked.
void cancel_jobs(cluster::ClusterHead& head);

}  // namespace dtrain::job
