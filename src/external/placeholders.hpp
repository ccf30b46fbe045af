// Words of a command line that say who the process is, for scripts that take it as arguments.
#pragma once

#include <string>
#include <vector>

#include "cast.hpp"
#include "parts.hpp"

namespace dtrain::external {

// Replaces {rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts}; any other brace stays as it is.
std::vector<std::string> fill_placeholders(std::vector<std::string> command, const Cast& cast, Role role, int index);

// Comma-separated host:port of all servers, of all workers.
std::string server_hosts(const Cast& cast);
std::string worker_hosts(const Cast& cast);

}  // namespace dtrain::external
