// Carries out the steps of cluster/tag_sync.hpp: reads the account and the job, and does what is decided.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/tag_sync.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// The job, on this machine, or on the head over ssh.
class TagSyncJob {
 public:
  virtual ~TagSyncJob() = default;
  virtual cluster::TagSyncView look(
      const cluster::Fleet& fleet) = 0;           // also announces the cluster's instances to the head
  virtual Path folder() const = 0;                // of the job that look() saw
  virtual void add(const std::string& host) = 0;  // throws Error if the job refuses
  virtual void remove(const std::string& host) = 0;
  // Announces the fleet, whose tags may hold the queue. Then stops the job with a checkpoint, and waits for its end. A
  // job of the queue stays there and is resumed later. Throws Error if it goes on, or may run and cannot be asked.
  enum class Stop { no_job, resumable, unsaved };  // the worst is the last
  virtual Stop stop(const std::string& why, const cluster::Fleet& fleet) = 0;
};
// The same for the job in one folder. A coordinator that does not answer may have a successor, which is waited for.
TagSyncJob::Stop stop_job_in(const JobFolder& folder, const std::string& why);
// Cancels all jobs of the cluster's queue that are not over, those that wait first, and waits until they are. Throws
// Error if the head cannot be asked.
void cancel_jobs(cluster::ClusterHead& head);
// `job_folder`: empty: the shared folder, or that of the job that the queue runs. On a machine that is no node of that
// cluster, any running instance may join, and an empty folder is the working directory.
std::unique_ptr<TagSyncJob> make_local_job(const Path& job_folder, const std::string& cluster);
// `job_folder`: path on the head; empty: the shared folder, or that of the job that the queue runs. The head must
// outlive the job.
std::unique_ptr<TagSyncJob> make_remote_job(cluster::ClusterHead& head, const std::string& job_folder);

// One round: reads, decides, carries out. Returns the number of steps done; a step that fails is reported and decided
// again in the next round.
int sync_tags(net::AwsCalls& aws, const std::string& cluster, TagSyncJob& job, const cluster::ClusterHead::Note& note);

// Drains a node from its job, and waits until it has left, for at most `patience`. Returns false if it has not.
bool drain_node(net::AwsCalls& aws, const cluster::Fleet& fleet, const cluster::Node& node, TagSyncJob& job,
                std::chrono::seconds patience);

}  // namespace dtrain::job
