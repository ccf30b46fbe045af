// --cluster NAME: a command about a job, given anywhere, runs on the head of that cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace dtrain::cli {

// nullopt: the command is to go on here, because nobody named a cluster, or this machine is a node of it; its jobs run
// on the registered nodes then. Else what became of it on the head: what it says there is passed on, as is its exit
// code, and a signal here is one there. `given`: the command line. Before options take their values.
// only_shown: nothing is to run, here or there.
std::optional<ExitCode> run_on_cluster(Command& command, const std::vector<std::string>& given, bool only_shown,
                                       Reporter& reporter);

}  // namespace dtrain::cli
