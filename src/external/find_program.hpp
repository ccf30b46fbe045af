// Finds a program as a shell would.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

// A word with a slash is a path relative to the current folder; another word is looked up in the PATH of `environment`.
// Throws Error with the places that were searched.
Path find_program(const std::string& message, const std::vector<std::string>& environment);

}  // namespace dtrain::external
