// Placeholders in a command line that are replaced by the rank and role of the process, for scripts that take them as
// arguments.
#pragma once

#include <string>
#include <vector>

#include "rank_placement.hpp"
#include "rank_processes.hpp"

namespace dtrain::external {

// Replaces {rank}, {local_rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts}; other braces stay. `rank`: of the
// worker, or of the worker beside a server.
std::vector<std::string> fill_placeholders(std::vector<std::string> command, const RankPlacement& placement, int rank,
                                           Role role, int index);

// Comma-separated host:port of all servers, of all workers from rank `first` on.
std::string server_hosts(const RankPlacement& placement);
std::string worker_hosts(const RankPlacement& placement, int first = 0);

}  // namespace dtrain::external
