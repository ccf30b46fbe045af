// How a process ended, in words.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

// "ended with exit code 3", or "was killed by signal 9 (SIGKILL)" where `signal` is not 0.
std::string describe_end(int exit_code, int signal);
// Of "KILL", "SIGKILL" or "kill"; nullopt: no signal is called so.
std::optional<int> signal_number(std::string_view name);

}  // namespace dtrain
