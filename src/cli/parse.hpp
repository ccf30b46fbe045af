// The command line to the options' `given` texts, through CLI11.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace dtrain::cli {

struct Parsed {
  std::string path;            // the command that the words name; a group's name or "" where they stop early
  Command* command = nullptr;  // null where they stop early
};

// Throws UsageError: an unknown command or option, a missing value, a word too many. Names are never abbreviated: a
// script that abbreviates would mean another option once one with the same beginning is added.
Parsed parse(CommandTree& tree, const std::vector<std::string>& given);

}  // namespace dtrain::cli
