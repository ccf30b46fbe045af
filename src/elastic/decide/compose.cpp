// Who is in the next generation. Survivors keep their relative order, newcomers come behind them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

using Ids = std::vector<WorkerId>;

void append(Ids& to, const Ids& more) { to.insert(to.end(), more.begin(), more.end()); }

// Something on this host may become ready soon.
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

bool is_anybody_coming(const Turn& turn) {
  return std::ranges::any_of(turn.state.order, [&](const std::string& name) {
    return is_on_its_way(turn.state, turn.state.hosts.at(name), turn.now);
  });
}

// A host that an edit took away stays until what the same edit brought is ready: one change instead of two.
bool awaits_replacement(Turn& turn, const Host& leaving) {
  if (leaving.wanted || turn.passed(leaving.edited, turn.state.policy.replace_wait)) return false;
  return std::ranges::any_of(turn.state.order, [&](const std::string& name) {
    const Host& host = turn.state.hosts.at(name);
    return host.edit == leaving.edit && is_on_its_way(turn.state, host, turn.now);
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

bool any_state(const State& state, const Ids& ids) {
  return std::ranges::any_of(ids, [&](WorkerId id) { return state.workers.at(id).standing.has_state; });
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

// Those who leave now, of those who shall.
Ids due_to_leave(Turn& turn, const Ids& leaving) {
  Ids due;
  for (const WorkerId id : leaving) {
    if (!awaits_replacement(turn, turn.host_of(turn.state.workers.at(id)))) due.push_back(id);
  }
  return due;
}

bool is_drained(Turn& turn, WorkerId id) { return turn.host_of(turn.state.workers.at(id)).drained; }

// Latest moment at which one of these hosts or workers became a reason for a change.
std::optional<Time> cause_of(Turn& turn, const Ids& joining, const Ids& leaving) {
  std::optional<Time> cause;
  for (const WorkerId id : joining) cause = std::max(cause.value_or(Time{}), turn.state.workers.at(id).since);
  for (const WorkerId id : leaving) {
    cause = std::max(cause.value_or(Time{}), turn.host_of(turn.state.workers.at(id)).edited);
  }
  return cause;
}

std::string too_few(const State& state, std::size_t number) {
  return fmt::format("{} of at least {}", count_of(number, "worker"), minimum(state));
}

// Before the first generation: nobody else is coming by itself.
void say_waiting(Turn& turn, std::size_t number) {
  if (is_anybody_coming(turn) || std::exchange(turn.state.said_waiting, true)) return;
  turn.say(fmt::format("the job waits: it has {}", too_few(turn.state, number)),
           "add hosts, or start it with a smaller --min-workers", Say::Kind::warning);
}

void stop_with_notice(Turn& turn, const std::string& reason) {
  const std::string too_few_left =
      fmt::format("{}, and fewer than {} are left", reason, count_of(minimum(turn.state), "worker"));
  turn.say(fmt::format("{}: the job saves and ends", too_few_left), "start it again with --resume when there are hosts",
           Say::Kind::warning);
  begin_stop(turn, too_few_left, ExitCode::resumable);
}

// Too few would be left. Who has to go soon cannot hold its state until others come.
void end_or_freeze(Turn& turn, const Ids& leaving, const std::string& reason) {
  if (somebody_has_notice(turn.state, leaving)) return stop_with_notice(turn, reason);
  begin_freeze(turn, reason, std::nullopt);
}

// Those who were to leave may: their state lives on in the others. Where nobody else has it, they hold it.
void hold(Turn& turn, const Ranks& ranks, std::size_t number) {
  auto& freezing = turn.state.freezing;
  if (!freezing) return say_waiting(turn, number);
  if (somebody_has_notice(turn.state, ranks.leaving)) return stop_with_notice(turn, freezing->reason);
  if (any_state(turn.state, ranks.staying)) {
    for (const WorkerId id : ranks.leaving) {
      dismiss(turn, turn.state.workers.at(id), "removed from the job");
      std::erase(turn.state.current->members, id);
      note_gone(turn, turn.host_of(turn.state.workers.at(id)));
    }
  }
  if (freezing->holding_since) return;
  freezing->holding_since = turn.now;
  turn.emit("hold", {{"generation", freezing->number}, {"reason", too_few(turn.state, number)}});
  const auto limit = std::chrono::duration_cast<std::chrono::seconds>(turn.state.policy.hold_timeout);
  turn.say(fmt::format("waiting with {}: those left keep their state in memory", too_few(turn.state, number)),
           fmt::format("add hosts; after {} s the job stops with a checkpoint", limit.count()), Say::Kind::warning);
}

// Nobody has state, and enough are ready: it pays to wait a little for those who are nearly there.
bool is_gathered(Turn& turn) {
  State& state = turn.state;
  if (!is_anybody_coming(turn)) return true;
  if (!state.gathering_since) state.gathering_since = turn.now;
  return state.policy.elastic && turn.passed(*state.gathering_since, state.policy.gather);
}

}  // namespace

std::optional<Cast> cast_planned(Turn& turn) {
  const State& state = turn.state;
  if (state.current->awaited > 0 || !state.current->stepped) return std::nullopt;
  if (turn.now - state.last_change < state.policy.between_changes) return std::nullopt;
  Ranks ranks = sort_members(state);
  Ids joining = ready_newcomers(state);
  Ids leaving = due_to_leave(turn, ranks.leaving);
  const bool urgent = std::ranges::any_of(leaving, [&](WorkerId id) { return is_drained(turn, id); });
  if (urgent && state.policy.boundary == Boundary::epoch) {
    std::erase_if(leaving, [&](WorkerId id) { return !is_drained(turn, id); });
    joining.clear();
  }
  if (joining.empty() && leaving.empty()) return std::nullopt;

  const std::string reason = describe(state, joining, leaving);
  const std::size_t rest = state.current->members.size() - leaving.size();
  if (rest + joining.size() < minimum(state)) return end_or_freeze(turn, leaving, reason), std::nullopt;
  if (rest == 0) leaving.clear();  // they hand their state over first, and leave with the next change

  Cast cast{.boundary = urgent ? Boundary::step : state.policy.boundary, .reason = reason};
  cast.cause = cause_of(turn, joining, leaving);
  for (const WorkerId id : state.current->members) {
    if (!contains(leaving, id)) cast.members.push_back(id);
  }
  append(cast.members, joining);
  cast.leaving = std::move(leaving);
  return cast;
}

std::optional<Cast> cast_fresh(Turn& turn) {
  const State& state = turn.state;
  Ranks ranks = sort_members(state);
  const Ids ready = ready_newcomers(state);
  const bool handing_over =
      !any_state(state, ranks.staying) && any_state(state, ranks.leaving) && ranks.staying.size() + ready.size() > 0;
  if (handing_over) {
    ranks.staying = state.current->members;
    ranks.leaving.clear();
  }
  Cast cast{.members = ranks.staying, .leaving = ranks.leaving, .boundary = Boundary::now};
  const bool has_state = any_state(state, cast.members);
  if (handing_over || !has_state || cast.members.size() < minimum(state)) append(cast.members, ready);
  const std::size_t number = cast.members.size();
  if (number < minimum(state)) {
    turn.state.gathering_since.reset();
    return hold(turn, ranks, number), std::nullopt;
  }
  if (!has_state && !is_gathered(turn)) return std::nullopt;
  turn.state.gathering_since.reset();
  cast.reason = state.freezing ? state.freezing->reason : "the job begins";
  return cast;
}

}  // namespace dtrain::elastic
