// What an agent that failed said, on one line.
#pragma once

#include <string>
#include <string_view>

namespace dtrain::launcher {

// The "dtrain: WHAT" and "hint: NEXT" lines, if there are any among the rest; else the begin of all.
std::string agent_words(std::string_view said);

}  // namespace dtrain::launcher
