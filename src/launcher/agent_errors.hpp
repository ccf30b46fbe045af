// The error of an agent, extracted from its output, on one line.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::launcher {

// The lines "dtrain: WHAT" and "hint: NEXT" of the output; without such lines, the beginning of all output.
std::string agent_errors(std::string_view said);

}  // namespace dtrain::launcher
