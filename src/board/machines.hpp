// The machines of jobs, as their events tell of them.
#pragma once

#include <dtrain/base/json.hpp>

#include "catalog.hpp"

namespace dtrain::board {

// {"hosts": [{"host", "run", "job", "state", "at", "address", "memory_free_bytes", "disk_free_bytes", "bandwidth",
// "clock_offset", "failures"}], "worker_seconds"}
Json machines_of(const Catalog& catalog);

}  // namespace dtrain::board
