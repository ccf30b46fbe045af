// Refusals of words that no command or option has, each with the name that the user may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"

namespace dtrain::cli {

// How to turn a switch off that has no value: it is left out, or the variable overrules files.
std::string hint_without_switch(const config::Option& option);

// What to do about a word behind the last argument of a command: it may belong to an option.
std::string hint_of_extra_word(const Command& command, const std::string& word);

// The option that `name` may mean, such as that of another program or a misspelt one, among the `names` that are valid
// there; "" where it is like none of them. All are without dashes; the hint puts `dashes` before each.
std::string hint_of_option(const std::string& name, const std::vector<std::string>& names, std::string_view dashes);

// Whether another program has an option of this name, without dashes, for which one of the command stands.
bool is_name_of_others(const CommandTree& tree, const std::string& path, const std::string& name);

// `path`: the command that the words before name; a group's name or "" where they stop early.
[[noreturn]] void refuse_command(const CommandTree& tree, const std::string& path, const std::string& word);
[[noreturn]] void refuse_option(const CommandTree& tree, const std::string& path, const std::string& word);

}  // namespace dtrain::cli
