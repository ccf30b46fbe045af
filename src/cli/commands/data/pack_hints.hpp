// What `data pack` and `data import` advise about options that only one of them has, and about names of classes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack_command.hpp"

namespace dtrain::cli {

// The command that takes the option, in backquotes.
std::string pack_with(std::string_view option, const Path& source);

// For pictures that a list or a COCO file names and that are not beside it. Empty where they are, for other sources,
// and where the user said where they are.
std::string advice_on_root(const PackCommand& command);

// Of the first two classes whose names look the same.
void warn_of_look_alikes(const std::vector<std::string>& classes, Reporter& reporter);

}  // namespace dtrain::cli
