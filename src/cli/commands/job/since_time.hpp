// Reads --since: the time from which a command shows lines.
#pragma once

#include <chrono>
#include <string>

namespace dtrain::cli {

// "90s", "10m", "2h" or "1d" before `now`, or a time: a date, alone or with "T12:00", "T12:00:00" or a fraction, with a
// blank in place of the T, and behind it "Z", an offset as "+02:00", or nothing for UTC. Throws UsageError for anything
// else, naming `option`.
std::chrono::system_clock::time_point since_time(const std::string& text, std::chrono::system_clock::time_point now,
                                                 const std::string& option);

}  // namespace dtrain::cli
