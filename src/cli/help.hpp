// Help texts as views of the command tree. Lines follow the terminal's width between 60 and
// 120 columns; without a terminal they have 100.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"

namespace dtrain::cli {

// Wraps `text` beside a left column, whose texts begin at column 2 and end before column `indent`.
constexpr std::size_t kHelpColumn = 30;
std::string two_columns(std::string_view left, std::string_view text, std::size_t indent = kHelpColumn);

// What a new user runs first: the commands that draw data, train on it and evaluate.
std::vector<std::string> first_commands();

// Usage and the list of commands, for a command line that names none.
std::string overview(const CommandTree& tree, std::string_view path);
// The text of -h and --help: usage, one sentence, first options, examples, and the names of the other options by
// group. For a command without first options it is long_help().
std::string short_help(const CommandTree& tree, std::string_view path, const Reporter& reporter);
// The text of --help-all: usage, one sentence, examples, every option in its group, exit codes, see also.
std::string long_help(const CommandTree& tree, std::string_view path, const Reporter& reporter);

}  // namespace dtrain::cli
