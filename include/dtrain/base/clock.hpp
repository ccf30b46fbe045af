// The wall clock.
#pragma once

#include <chrono>
#include <string>

namespace dtrain {

// Since 1970, as the clock of this machine shows it.
std::chrono::seconds unix_now();

// "2026-11-28T07:30:43Z", of the seconds since 1970.
std::string utc_text(std::chrono::seconds time);

}  // namespace dtrain
