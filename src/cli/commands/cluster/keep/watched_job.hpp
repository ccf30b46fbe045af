// The job that runs on a cluster, for `cluster watch`: found again when it was lost.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/healer.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"
#include "job/tag_sync/tag_sync_job.hpp"

namespace dtrain::cli {

class WatchedJob final : public cluster::ClusterInside {
 public:
  struct Place {
    std::string cluster{};
    std::string job_folder{};  // as seen from the head; empty: the shared folder, or that of the queue
    bool here = false;         // the coordinator runs on this machine
    bool ask = true;           // false: neither the head nor the job is to be asked
  };
  // The cloud and the reporter must outlive it.
  WatchedJob(ClusterCloud& cloud, Place place, Reporter& reporter)
      : cloud_(cloud), place_(std::move(place)), reporter_(reporter) {}

  // Looks for it if it is not connected. Throws as ClusterHead().
  job::TagSyncJob& job();
  // The next call of job() looks for it again.
  void lose();

  std::optional<cluster::TagSyncView> look(const cluster::Fleet& fleet) override;
  void add(const std::string& host) override { job().add(host); }
  void remove(const std::string& host) override { job().remove(host); }
  // A budget that is spent ends the workers in any case, so a job that cannot be stopped is only reported.
  std::string stop_job(const cluster::Fleet& fleet) override;

 private:
  ClusterCloud& cloud_;
  const Place place_;
  Reporter& reporter_;
  std::optional<cluster::ClusterHead> head_{};
  std::unique_ptr<job::TagSyncJob> job_{};
};

}  // namespace dtrain::cli
