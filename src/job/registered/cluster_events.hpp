// What was done to a registered cluster: one line of JSON each, in its folder.
#pragma once

#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::job {

// The caller holds the lock of the cluster, or is the runner of its queue.
void append_event(const Path& folder, const std::string& text);
// [{"time": "2026-01-31T12:00:00.000000Z", "event": text}, ...], the oldest first; at most the last hundred.
Json read_events(const Path& folder);

}  // namespace dtrain::job
