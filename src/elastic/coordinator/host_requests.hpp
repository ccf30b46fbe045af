// What requests about hosts ask for, judged by the state of the job. Pure.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

#include "decide/state.hpp"

namespace dtrain::elastic {

// The hosts that a request "drain" names. Throws UsageError for one that the job does not have, and, with "any_number"
// false, where the hosts that stay have fewer workers than the job needs: it would pause and wait for others.
std::vector<std::string> hosts_to_drain(const State& state, const Json& request, Time now);

// Throws UsageError, likewise, for a request "edit-hosts" that removes hosts and asks to "keep_enough".
void check_removed_hosts(const State& state, const Json& request, Time now);

// Drained hosts that a request "edit-hosts" adds: their lines are in the host file already, and they come back.
struct HostsBack {
  std::vector<std::string> names;
  Json rest;  // the request without their lines
};
// `slots`: of a line without slots=. Throws UsageError where a line asks for another number of slots.
HostsBack take_hosts_back(const State& state, const Json& request, int slots);

}  // namespace dtrain::elastic
