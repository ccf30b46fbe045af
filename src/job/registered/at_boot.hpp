// The queue of a registered cluster starts with its head, by one line in the crontab of the head's user. cron runs such
// lines without the user being logged in, which a systemd unit of the user does only where an administrator lets it.
#pragma once

#include <string>
#include <string_view>

#include <dtrain/cluster/registered.hpp>

namespace dtrain::job {

// Throws UsageError where there is no cron, and Error where the crontab of this user cannot be read.
void require_cron(const std::string& cluster);
// Adds the line, or replaces it. Throws as require_cron().
void start_queue_at_boot(const cluster::RegisteredCluster& cluster);
// Removes the line if it is there. Returns the error; empty: it is gone.
std::string forget_boot(const std::string& cluster);

// Pure. The line: it waits ten minutes at most for the shared folder. `program`: the words that start dtrain.
std::string boot_line(const cluster::RegisteredCluster& cluster, const std::vector<std::string>& program);
// Pure. The crontab without that cluster's line.
std::string without_boot_line(std::string_view crontab, const std::string& cluster);

}  // namespace dtrain::job
