// Requests of the user, notices, accepted host lists and the progress of training, which the next coordinator must
// know. They are recorded in the events only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

// The reason of a job's end after the event `done`, which has none: its workers are told to leave.
inline constexpr const char* kTrainingIsComplete = "training is complete";

struct PendingStop {
  std::string reason;
  ExitCode exit_code = ExitCode::resumable;
  bool at_once = false;  // kill, without a checkpoint
  bool save = true;      // the weights are worth a checkpoint
  friend bool operator==(const PendingStop&, const PendingStop&) = default;
};

struct PendingRequests {
  std::map<std::string, std::string> drained;  // hosts to keep out, with the reason
  std::set<std::string> noticed;               // those of them whose machines end soon
  std::optional<PendingStop> stop;             // set: the job is to end
  std::set<WorkerId> done;                     // workers that have completed the training
  bool trained = false;                        // since the job began, members have made a step
  std::vector<std::string> listed;             // hosts of the last accepted list, the oldest first
  std::set<std::string> unlisted;              // hosts that an accepted list removed, and that are not listed again
};

// Requests that are still valid after these events of the job (read_events() of elastic/records.hpp). Listing a host
// again, or beginning the job again, clears its request.
PendingRequests pending_requests_in(const std::vector<Json>& events);

// The event is written through to disk, so that the end of the machine does not lose it. `done` is not: each worker
// reports it, so thousands may come at once. Where the coordinator may not write, edits and drains are refused; a stop
// is acted upon at once, and its event waits with the others.
bool must_be_on_disk(const Json& event);

}  // namespace dtrain::elastic
