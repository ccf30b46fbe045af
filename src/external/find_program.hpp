// Where a program lies, as a shell would find it.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::external {

// A word with a slash is a path, seen from the current folder; another one is looked for in the PATH of `environment`.
// Throws Error that says where it was looked for.
Path find_program(const std::string& word, const std::vector<std::string>& environment);

}  // namespace dtrain::external
