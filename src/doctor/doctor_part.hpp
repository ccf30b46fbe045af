// The part of a host when `dtrain doctor -H` runs on another machine: it reports what it found, and keeps a port and a
// lock open; while all do so, it tries to reach the others. Both read one JSON document from standard input and answer
// one.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "doctor_facts.hpp"

namespace dtrain::doctor {

// {"secret", "number", "folder", "mark"} -> {"time_ns", "addresses", "port", "folder": {...}, "facts", "findings"}.
// Goes on until it is asked to stop, or for two minutes.
ExitCode serve_part(Reporter& reporter);
// {"secret", "number", "folder", "mark", "hosts": [{"addresses", "port"} | null]} -> {"links": [...], "seen",
// "lock_is_kept"}
ExitCode reach_part(Reporter& reporter);

}  // namespace dtrain::doctor
