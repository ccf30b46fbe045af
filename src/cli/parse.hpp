// The command line to the options' `given` texts, through CLI11.
#pragma once

#include "arguments.hpp"
#include "command.hpp"

namespace dtrain::cli {

// Returns the named command, or nullptr where the words stop before one. Throws UsageError for whatever CLI11 refuses.
Command* parse(CommandTree& tree, const Arguments& arguments);

}  // namespace dtrain::cli
