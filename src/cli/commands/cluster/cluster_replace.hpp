// Impaired workers of a cluster make room for new ones.
#pragma once

#include <string>
#include <vector>

#include "cluster_cloud.hpp"

namespace dtrain::cli {

struct Replaced {
  std::string node{}, instance_id{};  // that was ended
  std::string new_node{}, new_instance_id{};
};

// One after the other: the new one is registered and, where the old one is in the running job, let into it; then the
// old one leaves the job, if it still can, and is ended. `no_head`: AWS only. Throws NoCapacity and what `add` does;
// whoever says it again goes on from there.
std::vector<Replaced> replace_workers(ClusterCloud& cloud, const cluster::ClusterRequest& request,
                                      const std::vector<cluster::Node>& bad, bool no_head, Reporter& reporter);

}  // namespace dtrain::cli
