// What a running job itself says, and what the board asks of it. Files of this machine or a shared folder only.
#pragma once

#include <functional>
#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/train/ledger.hpp>

namespace dtrain::board {

// The hosts of a running job as its coordinator sees them, as of `hosts list`, with the share of each step that a rank
// waits for the others; {"running": false} where no coordinator answers.
Json live_hosts(const std::string& folder);

// {"recorded": false}, or {"epochs": [{"epoch", "samples", "expected", "complete"}], "steps"}: whether every sample
// counted exactly once in each epoch. Epochs are counted from 1.
Json ledger_check(const std::string& folder);
// The same for a ledger that workers may be writing: `read` is called again where an epoch before the last one lacks
// samples.
Json ledger_verdict(const std::function<train::Ledger()>& read);

// {"action": "stop" | "drain" | "add" | "remove", "host"}, as JSON text. The coordinator writes it to the job's events;
// a queue does not start again what is stopped. Throws UsageError and what asking the coordinator throws.
Json act_on_job(const std::string& folder, const std::string& request);

}  // namespace dtrain::board
