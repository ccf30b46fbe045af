// The bridge of cluster/bridge.hpp at work: it looks at the account and at the job, and does what is decided.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dtrain/cluster/bridge.hpp>
#include <dtrain/cluster/cluster_head.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// The job's side: on this machine, or on the head, over ssh.
class BridgeJob {
 public:
  virtual ~BridgeJob() = default;
  virtual cluster::BridgeView look(const cluster::Fleet& fleet) = 0;  // tells the head who belongs to the cluster, too
  virtual void add(const std::string& host) = 0;                      // Error: the job refuses
  virtual void remove(const std::string& host) = 0;
};
// Where this machine is no node of that cluster, any instance of it that runs may join as it is.
std::unique_ptr<BridgeJob> make_near_job(const Path& job_folder, const std::string& cluster);
// `job_folder` as the head sees it; empty: the shared folder. The head must outlive the job.
std::unique_ptr<BridgeJob> make_far_job(cluster::ClusterHead& head, const std::string& job_folder);

// One look and what follows from it. Returns how many steps were done; what fails is said, and comes again next time.
int bridge_round(net::AwsCalls& aws, const std::string& cluster, BridgeJob& job,
                 const cluster::ClusterHead::Note& note);

// Lets a node leave the job that it is in, and waits until it has, but no longer than `patience`. False: it has not.
bool drain_node(net::AwsCalls& aws, const cluster::Fleet& fleet, const cluster::Node& node, BridgeJob& job,
                std::chrono::seconds patience);

}  // namespace dtrain::job
