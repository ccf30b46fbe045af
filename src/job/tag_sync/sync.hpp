// Carries out the steps of cluster/tag_sync.hpp: reads the account and the job, and does what is decided.
#pragma once

#include <chrono>
#include <string>

#include "tag_sync_job.hpp"

namespace dtrain::job {

// One round: reads, decides, carries out. Returns the number of steps done; a step that fails is reported and decided
// again in the next round.
int sync_tags(net::AwsCalls& aws, const std::string& cluster, TagSyncJob& job, const cluster::ClusterHead::Note& note);

// Drains a node from its job, and waits until it has left, for at most `patience`. Returns false if it has not.
bool drain_node(net::AwsCalls& aws, const cluster::Fleet& fleet, const cluster::Node& node, TagSyncJob& job,
                std::chrono::seconds patience);

}  // namespace dtrain::job
