// The same cluster as a CloudFormation template, for those who review what is made by reading one.
#pragma once

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Pure. What CloudFormation cannot say is left out: other zones, types and markets where one has no machines, and a
// smaller cluster where there are too few.
Json cloud_formation_template(const Wish& wish, const Account& account);

}  // namespace dtrain::cluster
