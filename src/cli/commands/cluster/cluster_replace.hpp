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

// Replaces one worker after the other: the new one registers and joins the running job if the old one is in it; then
// the old one leaves the job, if it still can, and is terminated. `no_head`: uses AWS only. Throws NoCapacity and what
// `add` does; a repeated call continues from there.
std::vector<Replaced> replace_workers(ClusterCloud& cloud, const cluster::ClusterRequest& request,
                                      const std::vector<cluster::Node>& bad, bool no_head, Reporter& reporter);

}  // namespace dtrain::cli
