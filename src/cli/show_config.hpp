// --show-config: the options in force and where their values come from.
#pragma once

#include "command.hpp"

namespace dtrain::cli {

// After resolve(): one line an option, or a document (schema dtrain.config/1). Second names that were not given are
// left out, so that the values can be given back as a configuration file.
void show_config(const CommandTree& tree, const Command& command, Reporter& reporter);

}  // namespace dtrain::cli
