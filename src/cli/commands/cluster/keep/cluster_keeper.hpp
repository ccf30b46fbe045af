// `cluster watch --heal`: keeps the number of workers, and says what it does.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/healer.hpp>

#include "cli/commands/cluster/cluster_cloud.hpp"

namespace dtrain::cli {

class ClusterKeeper {
 public:
  // The cloud, the place, the inside and the reporter must outlive this.
  ClusterKeeper(ClusterCloud& cloud, const config::ClusterPlace& place, cluster::ClusterInside& inside,
                Reporter& reporter);
  ~ClusterKeeper();  // lets another one keep the cluster
  ClusterKeeper(const ClusterKeeper&) = delete;

  // Sets the budget; 0: no limit. Throws UsageError for one that is spent already.
  void set_budget(double dollars);
  // Looks and acts, unless the last look was a moment ago. Throws as cluster::Healer::look().
  void look();

 private:
  cluster::ClusterRequest request_of(const cluster::Fleet& fleet) const;
  void tell(const cluster::Healer::Look& look);
  void tell_clock();

  ClusterCloud& cloud_;
  const config::ClusterPlace& place_;
  Reporter& reporter_;
  cluster::Healer healer_;
  std::chrono::steady_clock::time_point next_{};
  std::string said_;  // of the last look: why nothing is done
  bool told_clock_ = false;
};

}  // namespace dtrain::cli
