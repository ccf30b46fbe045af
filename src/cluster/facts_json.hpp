// ClusterFacts as the head sends them to its nodes; `gpus` is each node's own.
#pragma once

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/compat_files.hpp>

namespace dtrain::cluster {

Json to_json(const ClusterFacts& facts);
ClusterFacts cluster_facts_from_json(const Json& json);  // throws DataError

}  // namespace dtrain::cluster
