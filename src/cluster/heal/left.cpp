#include "left.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

using State = WorkerSeen::State;

constexpr const char* kFromInside = "Client.InstanceInitiatedShutdown";  // EC2's code of the reason
constexpr std::size_t kMostLeftNamed = 4;

bool has_option(const Fleet& fleet, const char* name) {
  const auto found = fleet.options.find(name);
  return found != fleet.options.end() && found->second != "off";
}

void note_head(const Observed& observed, HealMemory& memory) {
  if (observed.head != Observed::Head::gone) {
    memory.lost_head.clear();
    memory.head_left = false;
  } else if (!observed.ended_head.empty()) {
    memory.lost_head = observed.ended_head;
    memory.head_left = observed.head_left;
  }
}

}  // namespace

bool shut_itself_down(const Node& node) { return node.end_reason == kFromInside; }

bool has_time_limit(const Fleet& fleet) { return has_option(fleet, "ttl") || has_option(fleet, "autostop"); }

const Node* latest_ended_head(const Fleet& fleet) {
  const Node* latest = nullptr;
  for (const Node& node : fleet.ending) {
    if (node.role == Role::head && (!latest || node.launch_time > latest->launch_time)) latest = &node;
  }
  return latest;
}

void note_left(const Observed& observed, HealMemory& memory) {
  note_head(observed, memory);
  for (const WorkerSeen& one : observed.workers) {
    if (one.state != State::ended || !one.left_itself || one.leaves || !one.replaced_by.empty()) continue;
    memory.left[one.id] = {one.name, one.base, one.weight};
  }
  // `up` starts base workers again under their names.
  std::erase_if(memory.left, [&](const auto& left) {
    return std::ranges::any_of(observed.workers, [&](const WorkerSeen& one) {
      return one.state != State::ended && one.name == left.second.name;
    });
  });
}

int count_left(const HealMemory& memory, bool base) {
  int count = 0;
  for (const auto& [id, one] : memory.left) {
    if (one.base == base) count += one.weight;
  }
  return count;
}

std::string left_text(const HealMemory& memory) {
  if (memory.left.empty()) return {};
  std::vector<std::string> names;
  for (const auto& [id, one] : memory.left) names.push_back(one.name);
  std::ranges::sort(names);
  return fmt::format(
      "shut down from inside, as time limits and a failed boot do: {}; no machine is started in their place, and "
      "`dtrain cluster up` or `add` starts workers again",
      join_first(names, kMostLeftNamed, ", "));
}

std::string why_no_head(const Observed& observed, const HealMemory& memory) {
  constexpr const char* kHint = "so none is started again; `dtrain cluster up` starts one";
  if (memory.head_left) {
    return fmt::format(
        "the head {} has shut itself down, as time limits, the last job of a queue and a failed boot do, {}",
        memory.lost_head, kHint);
  }
  if (memory.lost_head.empty() && observed.has_time_limit) {
    return fmt::format("the head may have ended itself, as time limits and idle nodes do, {}", kHint);
  }
  return {};
}

}  // namespace dtrain::cluster
