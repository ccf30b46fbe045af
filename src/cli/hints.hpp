// Refusals of words that no command or option has, each with the name that the user may have meant.
#pragma once

#include <string>

#include "command.hpp"

namespace dtrain::cli {

// `path`: the command that the words before name; a group's name or "" where they stop early.
[[noreturn]] void refuse_command(const CommandTree& tree, const std::string& path, const std::string& word);
[[noreturn]] void refuse_option(const CommandTree& tree, const std::string& path, const std::string& word);

}  // namespace dtrain::cli
