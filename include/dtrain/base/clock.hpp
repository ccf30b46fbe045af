// The wall clock.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace dtrain {

// Since 1970, as the clock of this machine shows it.
std::chrono::seconds unix_now();

// "2026-11-28T07:30:43Z", of the seconds since 1970.
std::string utc_text(std::chrono::seconds time);

// The seconds since 1970 of a time by RFC 3339, whatever its offset from UTC: "2026-11-28T07:30:43Z",
// "2026-11-28T09:30:43.5+02:00", "2026-11-28T07:30:43UTC"; one without an offset is in UTC. A fraction is dropped.
// nullopt for anything else.
std::optional<std::chrono::seconds> unix_time_of(const std::string& text);

}  // namespace dtrain
