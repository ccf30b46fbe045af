#include "decide_enlist.hpp"

namespace dtrain::job {
namespace {

using elastic::HostPhase;

bool has_worker(std::optional<HostPhase> phase) {
  return phase == HostPhase::preparing || phase == HostPhase::ready || phase == HostPhase::member;
}

// The coordinator waits, or has given the host up.
bool is_out(std::optional<HostPhase> phase) {
  return phase == HostPhase::drained || phase == HostPhase::failed || phase == HostPhase::quarantined;
}

// What the list shows of the host is a former process of this name.
bool shows_former(const HostSeen& seen) { return seen.is_new && !seen.has_agent; }

}  // namespace

bool awaits_order(const HostSeen& seen) { return shows_former(seen) && seen.phase == HostPhase::starting; }

Enlist decide_enlist(const HostSeen& seen) {
  if (!seen.phase) return Enlist::add;
  if (seen.phase == HostPhase::leaving) return Enlist::wait;
  if (shows_former(seen) && has_worker(seen.phase)) return Enlist::wait;  // until its coordinator misses it
  const bool awaits = awaits_order(seen);
  if (awaits && seen.looks_at_order < kLooksAtOrder) return Enlist::wait;
  if (!awaits && !(seen.is_new && is_out(seen.phase))) return Enlist::settled;
  return seen.has_other_hosts ? Enlist::remove_then_add : Enlist::add;
}

}  // namespace dtrain::job
