// The commands about clusters of registered hosts: `register`, and the verbs that all clusters have.
#pragma once

#include <memory>
#include <optional>

#include "cli/command.hpp"

namespace dtrain::cli {

std::unique_ptr<Command> make_cluster_register();

// Carries out a verb of `cluster` on a cluster of registered hosts, or refuses what has no meaning there. nullopt: the
// command is about another cluster, or none. Call it before options take their values: what a word means depends on the
// cluster.
std::optional<ExitCode> act_on_registered(const Command& command, bool only_shown, Reporter& reporter);

}  // namespace dtrain::cli
