// Starts workers to replace lost ones.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Starts at most as many workers as there are names, from the first of the pools that has any, and names them; none is
// no error. The workers carry tag::kHealed. Throws UsageError for an incomplete cluster and AwsError for errors that no
// pool can avoid.
AddResult refill_workers(const AwsContext& context, const Fleet& fleet, const std::vector<std::string>& names,
                         const std::vector<Pool>& pools, NodeLifecycle lifecycle);

}  // namespace dtrain::cluster
