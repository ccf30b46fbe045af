// What a head does before it has a cluster: the folder, the way to the other hosts, and the key for it.
#pragma once

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/registered.hpp>

namespace dtrain::job {

// Removes the cluster's own key from its folder, and what the head's ssh keeps beside it.
void forget_key(const Path& folder);

// What the folder of a cluster says decides which hosts run its jobs and which keys open them. Throws UsageError where
// another user owns it or may write there.
void require_own_folder(const Path& folder);

// The questions of this name of registered/head.hpp. Throw Error.
Json answer_place(const Json& question);
Json answer_unplace(const Json& question);
Json answer_reach(const cluster::RegisteredCluster& cluster);
Json answer_key(const cluster::RegisteredCluster& cluster);

}  // namespace dtrain::job
