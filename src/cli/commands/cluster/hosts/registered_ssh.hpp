// `cluster ssh --write-config` of registered hosts: names for ssh, such as lab.h3, that follow the cluster.
#pragma once

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

namespace dtrain::cli {

// A name leads where the user's own configuration leads for the host as the host file names it, as it is now.
ExitCode write_ssh_names(const cluster::RegisteredCluster& cluster, Reporter& reporter);
// Rewrites the names if there are any; a failure is only a warning.
void renew_ssh_names(const cluster::RegisteredCluster& cluster, Reporter& reporter);

}  // namespace dtrain::cli
