// --cluster NAME: a command about a job, given anywhere, runs on the head of that cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"

namespace dtrain::cli {

// Runs the command on the head of the cluster that --cluster names, passes on its output and forwards signals, and
// returns its exit code. Returns nullopt if the command continues here: no cluster is named, or this machine is one of
// its nodes; jobs then run on the registered nodes. `given`: the command line. Call it before options take their
// values. only_shown: nothing is to run, here or there.
std::optional<ExitCode> run_on_cluster(Command& command, const std::vector<std::string>& given, bool only_shown,
                                       Reporter& reporter);

}  // namespace dtrain::cli
