// Starts a head by the launch template that `up` made for it (template_of_head()).
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

// Starts a head of the first of these types that there is in its zone; no types: of the template's. `lost`: instance id
// of the head before; all that start one after the same head get the same machine. Returns its node, and in `attempts`
// what each type gave. Throws AwsError: the last type's, or one that is not for want of capacity.
Node start_head_again(net::AwsCalls& aws, const Fleet& fleet, const std::vector<std::string>& types,
                      const std::string& lost, std::vector<Attempt>& attempts);

}  // namespace dtrain::cluster
