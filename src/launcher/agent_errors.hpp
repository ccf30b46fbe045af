// The error of an agent, extracted from its output, on one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::launcher {

// The lines "dtrain: WHAT" and "hint: NEXT" of the output; without such lines, the beginning of all output.
std::string agent_errors(std::string_view said);
// The same of what was added to a log since it had this size; empty if the log cannot be read.
std::string errors_since(const Path& log, std::uintmax_t size);

}  // namespace dtrain::launcher
