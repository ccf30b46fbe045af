// Allots at most max_workers slots: first to members, then to processes that may become members, then to hosts in the
// file's order. A quarantined host gets what is left, so that a spare takes its place.
#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

// Number of slots up to the last one whose worker passes the test.
template <typename Test>
std::size_t slots_through(const State& state, const Host& host, const Test& test) {
  const std::size_t slots = std::min(host.slots.size(), static_cast<std::size_t>(host.line.slots));
  for (std::size_t slot = slots; slot > 0; --slot) {
    const auto found = state.workers.find(host.slots[slot - 1]);
    if (found != state.workers.end() && test(found->second)) return slot;
  }
  return 0;
}

}  // namespace

void allot_slots(State& state, Time now) {
  for (auto& [name, host] : state.hosts) host.allotted = 0;
  auto room = static_cast<std::size_t>(std::max(state.policy.max_workers, 0));
  const auto allot = [&](const auto& slots_wanted) {
    for (const std::string& name : state.order) {
      Host& host = state.hosts.at(name);
      if (host.drained) continue;
      const std::size_t more = slots_wanted(host) - std::min(slots_wanted(host), host.allotted);
      host.allotted += std::min(more, room);
      room -= std::min(more, room);
    }
  };
  const auto all_slots = [](const Host& host) { return static_cast<std::size_t>(host.line.slots); };
  allot([&](const Host& host) { return slots_through(state, host, is_member); });
  allot([&](const Host& host) { return slots_through(state, host, is_usable); });
  allot([&](const Host& host) { return host.quarantined_until > now ? 0 : all_slots(host); });
  allot(all_slots);
}

}  // namespace dtrain::elastic
