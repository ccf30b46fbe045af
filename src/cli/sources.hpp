// Every option's value from its strongest source: flag > DTRAIN_* > DEEPLEARNING_* > --config FILE >
// ./dtrain.toml > $XDG_CONFIG_HOME/dtrain/config.toml > recipe > default. A bad value is refused wherever it stands,
// also where a stronger source would win.
#pragma once

#include "command.hpp"

namespace dtrain::cli {

// Reads the configuration files into the tree, and sets the options that hold for every command. A mistake in a file is
// refused here where it concerns the command (null: none); returns the warnings about others. Help, --version,
// `completion`, `stop` and agents go on without a broken file.
std::vector<std::string> resolve_globals(CommandTree& tree, const Command* command);
// Sets the command's options, after resolve_globals(). Throws UsageError that names the flag, variable or file:line.
void resolve(const CommandTree& tree, Command& command);

}  // namespace dtrain::cli
