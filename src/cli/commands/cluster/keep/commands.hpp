// The commands that choose machines and that show how a cluster was kept.
#pragma once

#include <memory>

#include "cli/command.hpp"

namespace dtrain::cli {

std::unique_ptr<Command> make_cluster_types();
std::unique_ptr<Command> make_cluster_events();

}  // namespace dtrain::cli
