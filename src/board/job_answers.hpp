// What a running job itself says, and what the board asks of it. Files of this machine or a shared folder only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/train/ledger.hpp>

namespace dtrain::board {

// The hosts of a running job as its coordinator sees them, as of `hosts list`, with the share of each step that a rank
// waits for the others; {"running": false} where no coordinator answers.
Json live_hosts(const std::string& folder);
// The same of the coordinator's answer to {"ask": "list"}, with advice for the user of this folder. "goodput_percent"
// is null until it was measured. Pure.
Json live_answer(const Json& list, const std::string& folder);

// What the ids of a ledger name. An epoch has each record once; or, with a balanced sampler or repeated augmentation,
// as many copies as it has samples: of some records several, of others none.
enum class SampleIds { records, copies };
// `settings`: the text of the run's train.toml.
SampleIds sample_ids_of(std::string_view settings);

// {"recorded": false}, or {"checked", "epochs": [{"epoch", "samples", "expected", "complete"}], "steps"}. An epoch is
// complete where every record counted exactly once, if "checked" is "records"; if it is "copies", where as many samples
// counted as an epoch has, and no copy of a record twice. Epochs are counted from 1.
Json ledger_check(const std::string& folder, std::string_view settings);
// The same for a ledger that workers may be writing: `read` is called again where an epoch before the last one lacks
// samples.
Json ledger_verdict(const std::function<train::Ledger()>& read, SampleIds kind);

// {"action": "stop" | "drain" | "add" | "remove", "host"}, as JSON text. The coordinator writes it to the job's events;
// a queue does not start again what is stopped. Throws UsageError and what asking the coordinator throws.
Json act_on_job(const std::string& folder, const std::string& request);

}  // namespace dtrain::board
