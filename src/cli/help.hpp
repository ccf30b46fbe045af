// Help texts as views of the command tree.
#pragma once

#include <string>

#include "command.hpp"

namespace dtrain::cli {

std::string short_help(const CommandTree& tree, std::string_view path, const Reporter& reporter);
// Usage, one sentence, examples, options in groups, exit codes, see also.
std::string long_help(const CommandTree& tree, std::string_view path, const Reporter& reporter);

}  // namespace dtrain::cli
