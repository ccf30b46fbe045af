// Selects the members of the next generation. Survivors come first, in their order, and newcomers follow; then the
// members of a host stand together, so that they add up among themselves before anything leaves it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

using Ids = std::vector<WorkerId>;

constexpr Duration kShortHold{3'000};  // a wait that the user need not hear of

void append(Ids& to, const Ids& more) { to.insert(to.end(), more.begin(), more.end()); }

// A process on this host may become ready soon.
bool is_on_its_way(const State& state, const Host& host, Time now) {
  if (host.allotted == 0 || host.quarantined_until > now) return false;
  if (host.agent == AgentState::none || host.agent == AgentState::starting) return true;
  for (std::size_t slot = 0; slot < host.allotted; ++slot) {
    const auto found = state.workers.find(host.slots[slot]);
    if (found == state.workers.end()) return true;
    if (is_usable(found->second) && found->second.phase < WorkerPhase::ready) return true;
  }
  return false;
}

bool is_any_coming(const DecisionContext& context) {
  return std::ranges::any_of(context.state.order, [&](const std::string& name) {
    return is_on_its_way(context.state, context.state.hosts.at(name), context.now);
  });
}

// A host that an edit removed stays until the hosts added by the same edit are ready: one change instead of two.
bool awaits_replacement(DecisionContext& context, const Host& leaving) {
  if (leaving.wanted || context.passed(leaving.edited, context.state.policy.replace_wait)) return false;
  return std::ranges::any_of(context.state.order, [&](const std::string& name) {
    const Host& host = context.state.hosts.at(name);
    return host.edit == leaving.edit && is_on_its_way(context.state, host, context.now);
  });
}

struct Ranks {
  Ids staying, leaving;
};

Ranks sort_members(const State& state) {
  Ranks ranks;
  if (!state.current) return ranks;
  for (const WorkerId id : state.current->members) {
    (is_allotted(state, state.workers.at(id)) ? ranks.staying : ranks.leaving).push_back(id);
  }
  return ranks;
}

Ids ready_newcomers(const State& state) {
  Ids ready;
  for (const auto& [id, worker] : state.workers) {
    if (worker.phase == WorkerPhase::ready && is_allotted(state, worker)) ready.push_back(id);
  }
  return ready;
}

// Hosts in the order of their first members.
Ids gather_by_host(const State& state, const Ids& members) {
  std::map<std::string, std::size_t> places;
  std::vector<Ids> hosts;
  for (const WorkerId id : members) {
    const auto [found, is_new] = places.try_emplace(state.workers.at(id).host, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[found->second].push_back(id);
  }
  Ids gathered;
  for (const Ids& host : hosts) append(gathered, host);
  return gathered;
}

bool any_state(const State& state, const Ids& ids) {
  return std::ranges::any_of(ids, [&](WorkerId id) { return state.workers.at(id).position.has_state; });
}

std::string describe(const State& state, const Ids& joining, const Ids& leaving) {
  const auto names = [&](const Ids& ids) {
    std::vector<std::string> hosts;
    for (const WorkerId id : ids) hosts.push_back(state.workers.at(id).host);
    hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
    if (hosts.size() > 4) return count_of(ids.size(), "worker");
    return fmt::format("{}", fmt::join(hosts, ", "));
  };
  if (leaving.empty()) return fmt::format("{} joined", names(joining));
  if (joining.empty()) return fmt::format("{} left", names(leaving));
  return fmt::format("{} left, {} joined", names(leaving), names(joining));
}

std::size_t minimum(const State& state) { return static_cast<std::size_t>(std::max(1, state.policy.min_workers)); }

// Workers that leave now, among those that are to leave.
Ids due_to_leave(DecisionContext& context, const Ids& leaving) {
  Ids due;
  for (const WorkerId id : leaving) {
    if (!awaits_replacement(context, context.host_of(context.state.workers.at(id)))) due.push_back(id);
  }
  return due;
}

bool is_drained(DecisionContext& context, WorkerId id) { return context.host_of(context.state.workers.at(id)).drained; }

// The latest moment at which one of these hosts or workers became a reason for a change.
std::optional<Time> cause_of(DecisionContext& context, const Ids& joining, const Ids& leaving) {
  std::optional<Time> cause;
  for (const WorkerId id : joining) cause = std::max(cause.value_or(Time{}), context.state.workers.at(id).since);
  for (const WorkerId id : leaving) {
    cause = std::max(cause.value_or(Time{}), context.host_of(context.state.workers.at(id)).edited);
  }
  return cause;
}

std::string too_few(const State& state, std::size_t number) {
  return fmt::format("{} of at least {}", count_of(number, "worker"), minimum(state));
}

// Before the first generation: warns when no further worker is on its way.
void say_waiting(DecisionContext& context, std::size_t number) {
  if (is_any_coming(context) || std::exchange(context.state.said_waiting, true)) return;
  context.say(fmt::format("the job waits: it has {}", too_few(context.state, number)),
              "add hosts, or start it with a smaller setting 'min-workers'", Say::Kind::warning);
}

void stop_with_notice(DecisionContext& context, const std::string& reason) {
  const std::string too_few_left =
      fmt::format("{}, and fewer than {} are left", reason, count_of(minimum(context.state), "worker"));
  context.say(fmt::format("{}: the job saves and ends", too_few_left),
              "start it again with setting 'resume' when there are hosts", Say::Kind::warning);
  begin_stop(context, too_few_left, ExitCode::resumable);
}

// Too few workers would be left. A worker whose machine ends soon cannot hold its state until others come.
void end_or_freeze(DecisionContext& context, const Ids& leaving, const std::string& reason) {
  if (any_has_notice(context.state, leaving)) return stop_with_notice(context, reason);
  begin_freeze(context, reason, std::nullopt);
}

bool any_process_has_state(const State& state) {
  return std::ranges::any_of(
      state.workers, [](const auto& entry) { return is_usable(entry.second) && entry.second.position.has_state; });
}

// While a worker is on its way there is nothing to do about it.
void say_holding(DecisionContext& context, std::size_t number) {
  const State& state = context.state;
  Freezing& freezing = *context.state.freezing;
  const bool any_coming = is_any_coming(context);
  if (any_coming ? freezing.said_starting : freezing.said_holding) return;
  if (any_coming && !context.passed(*freezing.holding_since, kShortHold)) return;
  freezing.said_starting = context.state.said_standing = true;
  const Time end = *freezing.holding_since + state.policy.hold_timeout;
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(std::max(end, context.now) - context.now);
  if (any_coming) {
    return context.say(fmt::format("the job waits with {}: others are being started; it stops after {} s without them",
                                   too_few(state, number), left.count()));
  }
  freezing.said_holding = true;
  if (any_process_has_state(state)) {
    return context.say(fmt::format("waiting with {}: those left keep their state in memory", too_few(state, number)),
                       fmt::format("add hosts; after {} s the job stops with a checkpoint", left.count()),
                       Say::Kind::warning);
  }
  context.say(fmt::format("waiting with {}: no worker that trained is left, so training continues from the last "
                          "checkpoint when there are enough",
                          too_few(state, number)),
              fmt::format("add hosts; the job stops after {} s", left.count()), Say::Kind::warning);
}

// Workers that are to leave may go when the others have the state; otherwise they hold it.
void hold(DecisionContext& context, const Ranks& ranks, std::size_t number) {
  auto& freezing = context.state.freezing;
  if (!freezing) return say_waiting(context, number);
  if (any_has_notice(context.state, ranks.leaving)) return stop_with_notice(context, freezing->reason);
  if (any_state(context.state, ranks.staying)) {
    for (const WorkerId id : ranks.leaving) {
      dismiss(context, context.state.workers.at(id), "removed from the job");
      std::erase(context.state.current->members, id);
      note_gone(context, context.host_of(context.state.workers.at(id)));
    }
  }
  if (!freezing->holding_since) {
    freezing->holding_since = context.now;
    context.emit(EventKind::hold, {{"generation", freezing->number}, {"reason", too_few(context.state, number)}});
  }
  say_holding(context, number);
}

// No worker has state and enough are ready: waits a little for those that are nearly ready.
bool has_waited_at_start(DecisionContext& context) {
  State& state = context.state;
  if (!is_any_coming(context)) return true;
  if (!state.start_wait_since) state.start_wait_since = context.now;
  return state.policy.elastic && context.passed(*state.start_wait_since, state.policy.start_wait);
}

// After a hold the cause of the pause alone would be the opposite of what lets training go on.
std::string reason_to_start(const State& state, const Ids& members) {
  if (!state.freezing) return "the job begins";
  std::string reason = state.freezing->reason;
  if (!state.freezing->holding_since) return reason;
  reason += "; after waiting for workers";
  Ids joining;
  std::ranges::copy_if(members, std::back_inserter(joining),
                       [&](WorkerId id) { return !is_member(state.workers.at(id)); });
  return joining.empty() ? reason : fmt::format("{}, {}", reason, describe(state, joining, {}));
}

}  // namespace

std::optional<NextMembership> select_members_for_change(DecisionContext& context) {
  const State& state = context.state;
  if (state.current->awaited > 0 || !state.current->stepped) return std::nullopt;
  if (context.now - state.last_change < state.policy.between_changes) return std::nullopt;
  Ranks ranks = sort_members(state);
  Ids joining = ready_newcomers(state);
  Ids leaving = due_to_leave(context, ranks.leaving);
  const bool urgent = std::ranges::any_of(leaving, [&](WorkerId id) { return is_drained(context, id); });
  if (urgent && state.policy.boundary == Boundary::epoch) {
    std::erase_if(leaving, [&](WorkerId id) { return !is_drained(context, id); });
    // Newcomers wait for their own boundary, unless too few would be left without them.
    if (state.current->members.size() - leaving.size() >= minimum(state)) joining.clear();
  }
  if (joining.empty() && leaving.empty()) return std::nullopt;

  const std::string reason = describe(state, joining, leaving);
  const std::size_t rest = state.current->members.size() - leaving.size();
  if (rest + joining.size() < minimum(state)) return end_or_freeze(context, leaving, reason), std::nullopt;
  if (rest == 0) leaving.clear();  // they hand their state over first, and leave with the next change

  NextMembership next{.boundary = urgent ? Boundary::step : state.policy.boundary, .reason = reason};
  next.cause = cause_of(context, joining, leaving);
  for (const WorkerId id : state.current->members) {
    if (!contains(leaving, id)) next.members.push_back(id);
  }
  append(next.members, joining);
  next.members = gather_by_host(state, next.members);
  next.leaving = std::move(leaving);
  return next;
}

std::optional<NextMembership> select_members_to_start(DecisionContext& context) {
  const State& state = context.state;
  Ranks ranks = sort_members(state);
  const Ids ready = ready_newcomers(state);
  const bool handing_over =
      !any_state(state, ranks.staying) && any_state(state, ranks.leaving) && ranks.staying.size() + ready.size() > 0;
  if (handing_over) {
    ranks.staying = state.current->members;
    ranks.leaving.clear();
  }
  NextMembership next{.members = ranks.staying, .leaving = ranks.leaving, .boundary = Boundary::now};
  const bool has_state = any_state(state, next.members);
  if (handing_over || !has_state || next.members.size() < minimum(state)) append(next.members, ready);
  const std::size_t number = next.members.size();
  if (number < minimum(state)) {
    context.state.start_wait_since.reset();
    return hold(context, ranks, number), std::nullopt;
  }
  if (!has_state && !has_waited_at_start(context)) return std::nullopt;
  context.state.start_wait_since.reset();
  next.members = gather_by_host(state, next.members);
  next.reason = reason_to_start(state, next.members);
  return next;
}

}  // namespace dtrain::elastic
