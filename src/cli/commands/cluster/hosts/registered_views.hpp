// What `status`, `health`, `cost` and `events` show of a cluster of registered hosts.
#pragma once

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

#include "cli/commands/cluster/forecast_view.hpp"

namespace dtrain::cli {

// Blocks until all hosts have answered or are given up. Exit code 20: a host is impaired.
ExitCode show_status(const cluster::RegisteredCluster& cluster, bool no_head, Reporter& reporter);
ExitCode show_health(const cluster::RegisteredCluster& cluster, bool no_head, Reporter& reporter);
ExitCode show_cost(const cluster::RegisteredCluster& cluster, const ForecastChoice& choice, Reporter& reporter);
ExitCode show_events(const cluster::RegisteredCluster& cluster, Reporter& reporter);

}  // namespace dtrain::cli
