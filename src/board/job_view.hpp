// The history of a job from its events and its journal: who was a member when, and what each change cost.
#pragma once

#include <span>
#include <string>

#include <dtrain/base/json.hpp>

namespace dtrain::board {

// {"begin", "end", "lanes": [{"host", "slot", "spans": [{"from", "to", "state", "worker", "rank", "note"}], "marks":
// [{"at", "kind", "note"}]}], "generations": [...], "pauses": [{"from", "to", "reason", "parts"}], "stragglers": [...],
// "goodput_percent", "starts", "sent_bytes", "sent_at_least", "worker_seconds"}. The kind of a mark is "lost",
// "left", or "refused" of a host that did not pass the admission check. "starts" counts those that trained. A training
// too short to be measured has a null as "goodput_percent". Times are
// seconds since 1970; what is still going on ends at `now`, which is the time of the last record where the job is
// silent. `events` of events.jsonl and `journal` of journal.jsonl, which
// may be empty. Lines that lack what they should have are passed over.
Json job_view(std::span<const Json> events, std::span<const Json> journal, double now);

}  // namespace dtrain::board
