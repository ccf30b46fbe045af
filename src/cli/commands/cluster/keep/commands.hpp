// The commands that prepare an account, choose machines, adopt, stop and start a cluster, and show how it was kept.
#pragma once

#include <memory>

#include "cli/command.hpp"

namespace dtrain::cli {

std::unique_ptr<Command> make_cluster_adopt();
std::unique_ptr<Command> make_cluster_iam_policy();
std::unique_ptr<Command> make_cluster_types();
std::unique_ptr<Command> make_cluster_events();
std::unique_ptr<Command> make_cluster_stop();
std::unique_ptr<Command> make_cluster_start();

}  // namespace dtrain::cli
