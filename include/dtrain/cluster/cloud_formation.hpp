// The same cluster as a CloudFormation template, for reviews.
#pragma once

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Pure. The template leaves out what CloudFormation cannot express: fallbacks to other zones, types and markets, and a
// smaller cluster if there are too few machines.
Json cloud_formation_template(const ClusterRequest& request, const Account& account);

}  // namespace dtrain::cluster
