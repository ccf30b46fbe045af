// What a running job itself says, and what the board asks of it. Files of this machine or a shared folder only.
#pragma once

#include <string>

#include <dtrain/base/json.hpp>

namespace dtrain::board {

// The hosts of a running job as its coordinator sees them, as of `hosts list`, with the share of each step that a rank
// waits for the others; {"running": false} where no coordinator answers.
Json live_hosts(const std::string& folder);

// {"recorded": false}, or {"epochs": [{"epoch", "samples", "expected", "complete"}], "steps"}: whether every sample
// counted exactly once in each epoch.
Json ledger_check(const std::string& folder);

// {"action": "stop" | "drain" | "add" | "remove", "host"}, as JSON text. Throws UsageError and what asking the
// coordinator throws. The coordinator writes it to the job's events.
Json act_on_job(const std::string& folder, const std::string& request);

}  // namespace dtrain::board
