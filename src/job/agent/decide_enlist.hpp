// decide_enlist(): what a waiting host asks of the coordinator of its folder to become a host of an elastic job. Pure.
#pragma once

#include <optional>

#include <dtrain/elastic/host_phase.hpp>

namespace dtrain::job {

// The host, as the coordinator lists it and as the process that waits knows itself.
struct HostSeen {
  bool has_other_hosts = true;                // the list names more than this host
  std::optional<elastic::HostPhase> phase{};  // nullopt: the list does not name this host
  bool is_new = true;                         // the process has settled with no coordinator yet
  bool has_agent = false;                     // a child of the process
  int looks_at_order = 0;                     // how often awaits_order() was true, this time included
};

enum class Enlist {
  wait,             // ask again later
  settled,          // nothing to ask for: the coordinator decides what becomes of the host
  add,              // to the list
  remove_then_add,  // it stays listed as failed or drained, or with an order that went to a former process
};

// Whether the coordinator has ordered an agent that has not come up: the order is new, and this process will take it,
// or a former process of this name took it and was lost with it.
bool awaits_order(const HostSeen& seen);

// A new process does not wait for the end of its host's quarantine, nor for the agent of an order that was taken before
// it. Once it has settled, a host that is out stays so, because a user may have removed it.
Enlist decide_enlist(const HostSeen& seen);

// A new order becomes visible within so many looks.
inline constexpr int kLooksAtOrder = 5;

}  // namespace dtrain::job
