#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/head_guard.hpp>
#include <dtrain/cluster/power.hpp>

#include "left.hpp"

namespace dtrain::cluster {
namespace {

void see_head(const Fleet& fleet, HeadSeen& seen) {
  using Head = HeadSeen::Head;
  const Node* head = fleet.head();
  if (head) {
    seen.head = head->alive() ? Head::alive : Head::stopped;
  } else if ((head = latest_ended_head(fleet))) {
    seen.head = head->state == "terminated" ? Head::ended : Head::ending;
    seen.shut_down_from_inside = shut_itself_down(*head);
  } else {
    seen.head = Head::gone;
  }
  if (head) seen.id = head->instance_id;
}

std::string spent_budget_of(const Fleet& fleet) {
  const auto wish = tagged_wish(fleet);
  if (!wish || !wish->budget) return {};
  const Spending spending = tagged_spending(fleet);
  if (budget_state(*wish->budget, spending.dollars) != BudgetState::spent) return {};
  return budget_text(*wish->budget, spending);
}

std::chrono::seconds pause_after(int failures) {
  if (failures == 0) return kHeadShows;
  std::chrono::seconds pause = kFirstHeadPause;
  for (int failure = 1; failure < failures && pause < kLongestHeadPause; ++failure) pause *= 2;
  return std::min(pause, kLongestHeadPause);
}

std::string named(const std::string& id) { return id.empty() ? "the head" : "the head " + id; }

// Why no head may be started whatever time passes; empty: one may.
std::string why_never(const HeadSeen& seen, const HeadMemory& memory) {
  using Head = HeadSeen::Head;
  if (!seen.complete) return "the cluster is being made or removed, or lacks its launch templates";
  if (seen.stopped) return "the cluster is stopped, and only its owner starts it again";
  if (seen.head == Head::alive) {
    return fmt::format(
        "{} runs, says EC2, and cannot be reached from here: that is the network or its program, and no "
        "other head is started",
        named(seen.id));
  }
  if (seen.head == Head::stopped) {
    return fmt::format("{} is stopped, and only its owner starts it again", named(seen.id));
  }
  if (memory.left) {
    return fmt::format("{} has shut itself down, as time limits and a failed boot do, so none is started again",
                       named(memory.lost));
  }
  if (memory.lost.empty() && seen.may_end_itself) {
    return "the head may have ended itself, as time limits and idle nodes do, so none is started again";
  }
  if (!seen.spent_budget.empty()) return seen.spent_budget + " are spent, so no machine is started";
  return {};
}

}  // namespace

HeadSeen head_seen_in(const Fleet& fleet, const std::string& me, UnixTime now) {
  HeadSeen seen{.complete = fleet.group && fleet.launch_template && fleet.head_template, .stopped = is_stopped(fleet)};
  see_head(fleet, seen);
  seen.may_end_itself = has_time_limit(fleet);
  if (lease_state(tagged_lease(fleet), me, now) == LeaseState::taken) seen.keeper = tagged_lease(fleet).holder;
  seen.spent_budget = spent_budget_of(fleet);
  for (const Node* node : fleet.workers()) {  // by name
    if (node->state == "running" && node->named() && !leaves_on_purpose(*node)) {
      seen.workers.push_back(node->instance_id);
    }
  }
  return seen;
}

HeadDecision decide_head(const HeadSeen& seen, const std::string& me, std::chrono::seconds patience, HeadMemory memory,
                         UnixTime now) {
  using Head = HeadSeen::Head;
  const auto wait = [&](std::string why) { return HeadDecision{false, std::move(why), std::move(memory)}; };
  if (!seen.id.empty() && seen.id != memory.lost) memory = {};  // another head than the one that was lost before
  if (seen.head == Head::ending || seen.head == Head::ended) {
    memory.lost = seen.id;
    memory.left = seen.shut_down_from_inside;
  }
  if (std::string why = why_never(seen, memory); !why.empty()) {
    memory.gone_since = UnixTime(0);
    return wait(std::move(why));
  }
  if (memory.gone_since == UnixTime(0)) memory.gone_since = now;
  const auto turn = std::ranges::find(seen.workers, me);
  if (turn == seen.workers.end()) return wait("EC2 does not show this machine among the cluster's workers");
  const std::chrono::seconds wanted = patience + (turn - seen.workers.begin()) * kHeadTurn,
                             gone = now - memory.gone_since;
  if (seen.head == Head::ending) return wait(fmt::format("{} is ending, and still has its address", named(seen.id)));
  // Without figures that change: it is told once.
  if (gone < wanted) {
    return wait(fmt::format("{} has ended, says EC2; {}this worker starts one in its place when that is so for {}",
                            named(memory.lost), turn == seen.workers.begin() ? "" : "unless another one does, ",
                            format_duration(wanted)));
  }
  const std::string ended = fmt::format("{} has ended, says EC2", named(memory.lost));
  if (const auto pause = pause_after(memory.failures); memory.tried != UnixTime(0) && now - memory.tried < pause) {
    return wait(fmt::format("{}; {} after its last attempt this worker tries again to start one in its place", ended,
                            format_duration(pause)));
  }
  if (!seen.keeper.empty()) return wait(fmt::format("{}, and {} keeps the cluster", ended, seen.keeper));
  return {true, fmt::format("{}, {} ago, so a new one takes its address", ended, format_duration(gone)),
          std::move(memory)};
}

HeadMemory after_start(HeadMemory memory, bool started, UnixTime now) {
  memory.tried = now;
  memory.failures = started ? 0 : memory.failures + 1;
  return memory;
}

}  // namespace dtrain::cluster
