// `add`, `remove` and `down` on a cluster of registered hosts. None of them touches the power of a machine.
#pragma once

#include <string>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

namespace dtrain::cli {

// `words`: hosts as in a host file; `prices`: the text of --price, empty: unknown.
ExitCode add_hosts(const cluster::RegisteredCluster& cluster, const std::string& words, const std::string& prices,
                   bool yes, Reporter& reporter);
// The host leaves the jobs that run first, unless `by_force`.
ExitCode remove_host(const cluster::RegisteredCluster& cluster, const std::string& host, bool by_force,
                     Reporter& reporter);
// Ends the jobs of the cluster and forgets it.
ExitCode take_down(const cluster::RegisteredCluster& cluster, bool yes, Reporter& reporter);

}  // namespace dtrain::cli
