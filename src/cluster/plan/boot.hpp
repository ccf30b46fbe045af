// The user data of a cluster's nodes for a request.
#pragma once

#include <string>

#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/user_data.hpp>

namespace dtrain::cluster {

// `head_address`: empty for the head itself. `system`: the shared file system, if there is one. `adopted`: for a
// machine that dtrain did not start.
std::string boot_script(const ClusterRequest& request, const Account& account, NodeBoot::Role role,
                        const std::string& head_address, const std::optional<FileSystem>& system, bool adopted = false);

}  // namespace dtrain::cluster
