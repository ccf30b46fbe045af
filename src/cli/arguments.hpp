// The command line before it is parsed: unknown names are refused with advice, unique prefixes become whole names.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace dtrain::cli {

struct Arguments {
  std::string path;                // the command that the words name; a group's name or "" when they stop early
  std::vector<std::string> words;  // what the parser reads: whole option names, `--name=value` joined
  std::vector<std::string> rest;   // another program's command line, for a command that takes one: untouched
};

// Throws UsageError: an unknown command or option, an ambiguous prefix, a missing value.
Arguments correct_arguments(const CommandTree& tree, const std::vector<std::string>& given);

}  // namespace dtrain::cli
