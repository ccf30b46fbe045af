// Requests of the user, notices and accepted host lists that the next coordinator must know. They are recorded in the
// events only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain::elastic {

struct PendingStop {
  std::string reason;
  ExitCode exit_code = ExitCode::resumable;
  bool at_once = false;  // kill, without a checkpoint
  friend bool operator==(const PendingStop&, const PendingStop&) = default;
};

struct PendingRequests {
  std::map<std::string, std::string> drained;  // hosts to keep out, with the reason
  std::set<std::string> noticed;               // those of them whose machines end soon
  std::optional<PendingStop> stop;             // set: the job is to end
  std::vector<std::string> listed;             // hosts of the last accepted list, the oldest first
  std::set<std::string> unlisted;              // hosts that an accepted list removed, and that are not listed again
};

// Requests that are still valid after these events of the job (read_events() of elastic/records.hpp). Listing a host
// again, or beginning the job again, clears its request.
PendingRequests pending_requests_in(const std::vector<Json>& events);

}  // namespace dtrain::elastic
