// What the head's registry, the coordinator and the job folder say, as parts of a cluster::TagSyncView. Pure.
#pragma once

#include <set>
#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/tag_sync.hpp>

namespace dtrain::job {

// Asks the registry for its nodes, and a coordinator for its hosts.
Json list_question();

// Addresses of the nodes in the registry's answer that it can reach.
std::set<std::string> connected_nodes(const Json& list);
// The hosts in the text of a host file. Hosts that left stay in the list of the job for a while, but not here.
std::set<std::string> names_in_host_file(const std::string& text);
// Takes the states of hosts from `dtrain hosts list --json`, which is also the coordinator's answer.
void add_host_states(const Json& job, cluster::TagSyncView& view);

}  // namespace dtrain::job
