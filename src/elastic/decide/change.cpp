// The next generation, from Prepare to the first step.
#include <fmt/format.h>

#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kMeshAttempts = 3;

std::vector<Member> members_of(const State& state, const Roster& roster) {
  std::vector<Member> members;
  members.reserve(roster.members.size());
  for (const WorkerId id : roster.members) {
    const Worker& worker = state.workers.at(id);
    members.push_back({id, worker.host, worker.slot, worker.data});
  }
  return members;
}

std::vector<WorkerId> with_leaving(const Roster& roster) {
  std::vector<WorkerId> all = roster.members;
  all.insert(all.end(), roster.leaving.begin(), roster.leaving.end());
  return all;
}

Timeline times_of_cause(const State& state, const Cast& cast, Time now) {
  if (state.freezing) return state.freezing->times;
  Timeline times;
  times.cause = times.noticed = cast.cause.value_or(now);
  return times;
}

void begin_change(Turn& turn, Cast cast) {
  State& state = turn.state;
  const Timeline times = times_of_cause(state, cast, turn.now);
  state.change = Roster{.number = state.next_generation++,
                        .members = std::move(cast.members),
                        .leaving = std::move(cast.leaving),
                        .boundary = cast.boundary,
                        .reason = std::move(cast.reason),
                        .times = times};
  Roster& change = *state.change;
  change.awaited = change.members.size();
  change.times.begun = state.last_change = turn.now;
  for (const WorkerId id : change.members) state.workers.at(id).invited = change.number;
  turn.add(JournalEntry{change.number, false, state.reserved_workers, {}});
  turn.emit("prepare", {{"generation", change.number},
                        {"workers", change.members.size()},
                        {"leaving", host_names(state, change.leaving)},
                        {"reason", change.reason}});
  const std::vector<Member> members = members_of(state, change);
  convene(turn, change.number, false, members);
  turn.send(with_leaving(change), Prepare{change.number, members});
}

// The host list may have changed since the change was begun.
bool is_still_wanted(const State& state, const Roster& change) {
  if (!state.current || change.boundary == Boundary::now) return true;
  const auto allotted = [&](WorkerId id) { return is_allotted(state, state.workers.at(id)); };
  const auto joins = [&](WorkerId id) { return !is_member(state.workers.at(id)); };
  return std::ranges::none_of(change.leaving, allotted) &&
         std::ranges::all_of(change.members, [&](WorkerId id) { return allotted(id) || !joins(id); });
}

// Somebody was asked to go at the next step, and still trains.
bool somebody_is_drained(const State& state) {
  return state.current && std::ranges::any_of(state.current->members, [&](WorkerId id) {
           return state.hosts.at(state.workers.at(id).host).drained;
         });
}

// From here on the change is the current generation: its members enter it.
void switch_over(Turn& turn) {
  State& state = turn.state;
  std::vector<WorkerId> newcomers;
  for (const WorkerId id : state.change->members) {
    Worker& worker = state.workers.at(id);
    if (is_member(worker)) continue;
    newcomers.push_back(id);
    turn.enter_phase(worker, WorkerPhase::member);
  }
  for (const WorkerId id : state.change->leaving) {
    if (Worker* worker = turn.find(id); worker && is_member(*worker)) turn.enter_phase(*worker, WorkerPhase::leaving);
  }
  if (state.change->boundary != Boundary::now) turn.send(newcomers, Commit{state.change->number, Boundary::now});
  state.current = std::exchange(state.change, std::nullopt);
  state.current->awaited = state.current->members.size();
  state.freezing.reset();
  turn.settle = true;
}

void commit_change(Turn& turn) {
  State& state = turn.state;
  Roster& change = *state.change;
  allot_slots(state, turn.now);
  if (change.boundary == Boundary::epoch && somebody_is_drained(state))
    return abandon_change(turn, "a host is drained");
  if (!is_still_wanted(state, change)) return abandon_change(turn, "the hosts changed meanwhile");
  change.committed = true;
  change.times.meshed = turn.now;
  state.mesh_attempts = 0;
  const std::vector<Member> members = members_of(state, change);
  turn.add(JournalEntry{change.number, true, state.reserved_workers, members});
  convene(turn, change.number, true, members);
  Json hosts = Json::array();
  for (const Member& member : members) hosts.push_back(member.host);
  turn.emit("commit", {{"generation", change.number},
                       {"members", std::move(hosts)},
                       {"reason", change.reason},
                       {"prepare_seconds", seconds_between(change.times.begun, turn.now)}});
  if (change.boundary == Boundary::now) {
    turn.send(change.members, Commit{change.number, Boundary::now});
    switch_over(turn);
  } else {
    turn.send(state.current->members, Commit{change.number, change.boundary});
  }
}

void all_entered(Turn& turn) {
  State& state = turn.state;
  Roster& current = *state.current;
  current.awaited = 0;
  current.times.entered = turn.now;
  if (!current.times.switched) current.times.switched = turn.now;
  turn.emit("entered",
            {{"generation", current.number}, {"sync_seconds", seconds_between(current.times.switched, turn.now)}});
  for (const WorkerId id : current.leaving) {
    Worker* worker = turn.find(id);
    if (worker == nullptr) continue;
    dismiss(turn, *worker, "removed from the job");
    note_gone(turn, turn.host_of(*worker));
  }
  turn.settle = true;
}

void first_step(Turn& turn) {
  Roster& current = *turn.state.current;
  Timeline& times = current.times;
  current.stepped = true;
  times.stepped = turn.now;
  const std::optional<Time> paused = current.boundary == Boundary::now ? times.cause : times.switched;
  turn.emit("generation", {{"generation", current.number},
                           {"workers", current.members.size()},
                           {"reason", current.reason},
                           {"pause_seconds", seconds_between(paused, times.stepped)},
                           {"seconds", Json::object({{"detect", seconds_between(times.cause, times.noticed)},
                                                     {"decide", seconds_between(times.noticed, times.begun)},
                                                     {"prepare", seconds_between(times.begun, times.meshed)},
                                                     {"commit", seconds_between(times.meshed, times.switched)},
                                                     {"sync", seconds_between(times.switched, times.entered)},
                                                     {"first_step", seconds_between(times.entered, times.stepped)}})}});
}

// Whom to do without. Newcomers that did not manage come first; those that train already are only given up after
// several attempts, unless they do not answer at all while nothing can go on without them.
std::vector<WorkerId> whom_to_blame(Turn& turn) {
  const State& state = turn.state;
  const Roster& change = *state.change;
  std::vector<WorkerId> silent, failing, newcomers, bad_newcomers;
  for (const WorkerId id : change.members) {
    const Worker& worker = state.workers.at(id);
    const bool answered = worker.meshed == change.number;
    const bool bad = !answered || !worker.mesh_failure.empty();
    if (!answered) silent.push_back(id);
    if (answered && bad) failing.push_back(id);
    if (!is_member(worker)) newcomers.push_back(id);
    if (!is_member(worker) && bad) bad_newcomers.push_back(id);
  }
  const bool among_newcomers = newcomers.size() == change.members.size();
  const bool last_attempt = state.mesh_attempts >= kMeshAttempts;
  if (!bad_newcomers.empty() && !among_newcomers) return bad_newcomers;
  if (!silent.empty() && (last_attempt || change.boundary == Boundary::now)) return silent;
  if (!last_attempt) return {};
  if (!newcomers.empty() && !among_newcomers) return newcomers;
  return failing.empty() ? failing : std::vector<WorkerId>{std::ranges::max(failing)};
}

std::string why_not_meshed(const Worker& worker, Generation number) {
  if (worker.meshed != number) return "it did not connect to the others in time";
  if (worker.mesh_failure.empty()) return "others could not connect to it";
  return fmt::format("it could not connect to the others: {}", worker.mesh_failure);
}

}  // namespace

void consider_change(Turn& turn) {
  State& state = turn.state;
  if (state.ending || state.edits == 0) return;
  if (state.change) {
    const bool waits_for_epoch = state.change->committed && state.change->boundary == Boundary::epoch;
    if (waits_for_epoch && somebody_is_drained(state)) begin_freeze(turn, "a host is drained", std::nullopt);
    return;
  }
  if (turn.now < state.not_before) return;
  if (state.freezing && state.fruitless > state.policy.fruitless_limit) {
    return begin_stop(turn, "the job keeps failing without getting any further", ExitCode::no_progress);
  }
  const bool running = state.current && !state.freezing;
  if (state.freezing && !all_frozen(state)) return;
  if (!has_quorum(turn)) return;
  if (std::optional<Cast> cast = running ? cast_planned(turn) : cast_fresh(turn)) begin_change(turn, std::move(*cast));
}

void on_meshed(Turn& turn, Worker& worker, const Meshed& meshed) {
  auto& change = turn.state.change;
  if (!change || change->committed || meshed.generation != change->number) return;
  if (worker.invited != change->number || worker.meshed == change->number) return;
  worker.meshed = meshed.generation;
  worker.mesh_failure = meshed.failure;
  if (--change->awaited > 0) return;
  turn.settle = true;
  const auto failed = [&](WorkerId id) { return !turn.state.workers.at(id).mesh_failure.empty(); };
  if (std::ranges::any_of(change->members, failed)) {
    mesh_failed(turn);
  } else {
    commit_when_known(turn);
  }
}

void commit_when_known(Turn& turn) {
  const auto& change = turn.state.change;
  if (change && !change->committed && change->awaited == 0 && change_is_known(turn.state)) commit_change(turn);
}

void mesh_failed(Turn& turn) {
  State& state = turn.state;
  const Generation number = state.change->number;
  ++state.mesh_attempts;
  const std::vector<WorkerId> blamed = whom_to_blame(turn);
  abandon_change(turn, "not everybody could connect to everybody");
  for (const WorkerId id : blamed) {
    if (const Worker* worker = turn.find(id)) lose_worker(turn, id, {.reason = why_not_meshed(*worker, number)});
  }
}

void abandon_change(Turn& turn, const std::string& reason) {
  State& state = turn.state;
  if (!state.change || state.change->committed) return;
  turn.emit("abandoned", {{"generation", state.change->number}, {"reason", reason}});
  state.change.reset();
  state.not_before = turn.now + state.policy.between_changes * std::max(1, state.mesh_attempts);
}

void sign_of(Turn& turn, const Worker& worker, Generation number) {
  State& state = turn.state;
  const auto& change = state.change;
  if (change && change->committed && number == change->number && is_member(worker)) switch_over(turn);
  auto& current = state.current;
  if (current && number == current->number && worker.invited == number && !current->times.switched) {
    current->times.switched = turn.now;
  }
}

void on_entered(Turn& turn, Worker& worker, const Entered& entered) {
  sign_of(turn, worker, entered.generation);
  auto& current = turn.state.current;
  if (!current || entered.generation != current->number) return;
  if (!is_member(worker) || worker.invited != current->number || worker.entered == current->number) return;
  worker.entered = entered.generation;
  worker.standing = entered.standing;
  current->start = std::max(current->start.value_or(Standing{}), entered.standing);
  if (current->awaited > 0 && --current->awaited == 0) all_entered(turn);
}

// A step needs everybody, so everybody has entered, even if not everybody's word of it is here.
void on_step(Turn& turn, Worker& worker) {
  State& state = turn.state;
  Roster& current = *state.current;
  if (current.awaited > 0) all_entered(turn);
  if (!current.stepped) first_step(turn);
  if (state.furthest < worker.standing) {
    state.furthest = worker.standing;
    state.fruitless = 0;
  }
  if (std::exchange(worker.stepped, true)) return;
  Host& host = turn.host_of(worker);
  if (host.logged || !host.wanted) return;
  host.logged = true;
  turn.emit("added", {{"host", worker.host}, {"generation", current.number}});
  turn.add(LogMembership{true, worker.host});
}

void dismiss(Turn& turn, Worker& worker, const std::string& reason) {
  if (worker.phase == WorkerPhase::ending) return;
  auto& change = turn.state.change;
  if (change && contains(change->members, worker.id)) abandon_change(turn, "a newcomer is not needed any more");
  if (worker.phase == WorkerPhase::starting) {
    turn.add(KillWorker{worker.id, false});
    return turn.enter_phase(worker, WorkerPhase::ending);
  }
  if (std::exchange(worker.told_leave, true)) return;
  turn.enter_phase(worker, WorkerPhase::leaving);
  turn.send(worker.id, Leave{reason});
}

}  // namespace dtrain::elastic
