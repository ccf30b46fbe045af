// Variables of the environment that look like those of options and are read by nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "command.hpp"

namespace dtrain::cli {

// One warning for each of `names` that begins with DTRAIN_ and is like the variable of an option, but is that of none.
// Pure.
std::vector<std::string> warnings_of_variables(const CommandTree& tree, std::span<const std::string> names);

// The names of this process's variables.
std::vector<std::string> environment_names();

}  // namespace dtrain::cli
