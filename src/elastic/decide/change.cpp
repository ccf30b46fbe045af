// The next generation, from Prepare to its first step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kMeshAttempts = 3;

std::vector<Member> members_of(const State& state, const GenerationPlan& plan) {
  std::vector<Member> members;
  members.reserve(plan.members.size());
  for (const WorkerId id : plan.members) {
    const Worker& worker = state.workers.at(id);
    members.push_back({id, worker.host, worker.slot, worker.data});
  }
  return members;
}

std::vector<WorkerId> with_leaving(const GenerationPlan& plan) {
  std::vector<WorkerId> all = plan.members;
  all.insert(all.end(), plan.leaving.begin(), plan.leaving.end());
  return all;
}

Timeline times_of_cause(const State& state, const NextMembership& next, Time now) {
  if (state.freezing) return state.freezing->times;
  Timeline times;
  times.cause = times.noticed = next.cause.value_or(now);
  return times;
}

void begin_change(DecisionContext& context, NextMembership next) {
  State& state = context.state;
  const Timeline times = times_of_cause(state, next, context.now);
  state.change = GenerationPlan{.number = state.next_generation++,
                                .members = std::move(next.members),
                                .leaving = std::move(next.leaving),
                                .boundary = next.boundary,
                                .reason = std::move(next.reason),
                                .times = times};
  GenerationPlan& change = *state.change;
  change.awaited = change.members.size();
  change.times.begun = state.last_change = context.now;
  for (const WorkerId id : change.members) state.workers.at(id).invited = change.number;
  context.add(JournalEntry{change.number, false, state.reserved_workers, {}});
  context.emit(EventKind::prepare, {{"generation", change.number},
                                    {"workers", change.members.size()},
                                    {"leaving", host_names(state, change.leaving)},
                                    {"reason", change.reason}});
  const std::vector<Member> members = members_of(state, change);
  announce_change(context, change.number, false, members);
  context.send(with_leaving(change), Prepare{change.number, members});
}

// False when the host list has changed since the change was begun.
bool is_still_wanted(const State& state, const GenerationPlan& change) {
  if (!state.current || change.boundary == Boundary::now) return true;
  const auto allotted = [&](WorkerId id) { return is_allotted(state, state.workers.at(id)); };
  const auto joins = [&](WorkerId id) { return !is_member(state.workers.at(id)); };
  return std::ranges::none_of(change.leaving, allotted) &&
         std::ranges::all_of(change.members, [&](WorkerId id) { return allotted(id) || !joins(id); });
}

// A member's host was asked to leave at the next step.
bool any_member_is_drained(const State& state) {
  return state.current && std::ranges::any_of(state.current->members, [&](WorkerId id) {
           return state.hosts.at(state.workers.at(id).host).drained;
         });
}

// The change becomes the current generation: its members enter it.
void switch_over(DecisionContext& context) {
  State& state = context.state;
  std::vector<WorkerId> newcomers;
  int rank = 0;
  for (const WorkerId id : state.change->members) {
    Worker& worker = state.workers.at(id);
    worker.rank = rank++;
    if (!worker.let_in || (state.freezing && state.freezing->holding_since)) worker.let_in = context.now;
    if (is_member(worker)) continue;
    newcomers.push_back(id);
    context.enter_phase(worker, WorkerPhase::member);
  }
  for (const WorkerId id : state.change->leaving) {
    if (Worker* worker = context.find(id); worker && is_member(*worker))
      context.enter_phase(*worker, WorkerPhase::leaving);
  }
  if (state.change->boundary != Boundary::now) context.send(newcomers, Commit{state.change->number, Boundary::now});
  state.current = std::exchange(state.change, std::nullopt);
  state.current->awaited = state.current->members.size();
  state.freezing.reset();
  context.settle = true;
}

void commit_change(DecisionContext& context) {
  State& state = context.state;
  GenerationPlan& change = *state.change;
  allot_slots(state, context.now);
  if (change.boundary == Boundary::epoch && any_member_is_drained(state))
    return abandon_change(context, "a host is drained");
  if (!is_still_wanted(state, change)) return abandon_change(context, "the hosts changed meanwhile");
  change.committed = true;
  change.times.meshed = context.now;
  state.mesh_attempts = 0;
  const std::vector<Member> members = members_of(state, change);
  context.add(JournalEntry{change.number, true, state.reserved_workers, members});
  announce_change(context, change.number, true, members);
  Json hosts = Json::array();
  for (const Member& member : members) hosts.push_back(member.host);
  context.emit(EventKind::commit, {{"generation", change.number},
                                   {"members", std::move(hosts)},
                                   {"reason", change.reason},
                                   {"prepare_seconds", seconds_between(change.times.begun, context.now)}});
  if (change.boundary == Boundary::now) {
    context.send(change.members, Commit{change.number, Boundary::now});
    switch_over(context);
  } else {
    context.send(state.current->members, Commit{change.number, change.boundary});
  }
}

void all_entered(DecisionContext& context) {
  State& state = context.state;
  GenerationPlan& current = *state.current;
  current.awaited = 0;
  current.times.entered = context.now;
  if (!current.times.switched) current.times.switched = context.now;
  context.emit(EventKind::entered, {{"generation", current.number},
                                    {"sync_seconds", seconds_between(current.times.switched, context.now)}});
  for (const WorkerId id : current.leaving) {
    Worker* worker = context.find(id);
    if (worker == nullptr) continue;
    dismiss(context, *worker, "removed from the job");
    note_gone(context, context.host_of(*worker));
  }
  context.settle = true;
}

// The batch and the learning rate change with the workers, or not: the log says so for each generation.
Json::Object step_size_json(const DecisionContext& context, std::size_t workers) {
  const StepSize& size = context.state.policy.step_size;
  if (size.samples(workers) == 0) return {};
  return {{"global_batch", size.samples(workers)}, {"rate_factor", size.rate_factor(workers)}};
}

void say_step_size(DecisionContext& context) {
  const GenerationPlan& current = *context.state.current;
  const std::size_t workers = current.members.size();
  const StepSize& size = context.state.policy.step_size;
  if (size.per_worker == 0) return;
  context.say(fmt::format("generation {}: {}, {} samples a step, learning rate x {:.4g}", current.number,
                          count_of(workers, "worker"), size.samples(workers), size.rate_factor(workers)));
}

void first_step(DecisionContext& context) {
  GenerationPlan& current = *context.state.current;
  Timeline& times = current.times;
  current.stepped = true;
  times.stepped = context.now;
  const std::optional<Time> paused = current.boundary == Boundary::now ? times.cause : times.switched;
  Json::Object event = {{"generation", current.number},
                        {"workers", current.members.size()},
                        {"reason", current.reason},
                        {"pause_seconds", seconds_between(paused, times.stepped)},
                        {"seconds", Json::object({{"detect", seconds_between(times.cause, times.noticed)},
                                                  {"decide", seconds_between(times.noticed, times.begun)},
                                                  {"prepare", seconds_between(times.begun, times.meshed)},
                                                  {"commit", seconds_between(times.meshed, times.switched)},
                                                  {"sync", seconds_between(times.switched, times.entered)},
                                                  {"first_step", seconds_between(times.entered, times.stepped)}})}};
  for (auto& member : step_size_json(context, current.members.size())) event.push_back(std::move(member));
  context.emit(EventKind::generation, std::move(event));
  say_step_size(context);
}

// Workers to evict after a failed attempt to connect. Newcomers that failed come first. Members are evicted only after
// several attempts, unless they do not answer while nothing can go on without them. Workers that name a lack of their
// own machine are evicted before those that miss them.
std::vector<WorkerId> whom_to_blame(DecisionContext& context) {
  const State& state = context.state;
  const GenerationPlan& change = *state.change;
  std::vector<WorkerId> silent, failing, lacking, newcomers, bad_newcomers, causes;
  bool newcomer_lacks = false;
  for (const WorkerId id : change.members) {
    const Worker& worker = state.workers.at(id);
    const bool answered = worker.meshed == change.number;
    const bool bad = !answered || !worker.mesh_failure.empty();
    if (!answered) silent.push_back(id);
    if (answered && bad) failing.push_back(id);
    const bool lacks = answered && bad && worker.mesh_failure_is_local;
    if (lacks) lacking.push_back(id);
    if (!is_member(worker)) newcomers.push_back(id);
    if (!is_member(worker) && bad) bad_newcomers.push_back(id);
    if (is_member(worker) || (answered && !lacks)) continue;
    causes.push_back(id);
    newcomer_lacks = newcomer_lacks || lacks;
  }
  const bool among_newcomers = newcomers.size() == change.members.size();
  const bool last_attempt = state.mesh_attempts >= kMeshAttempts;
  if (!bad_newcomers.empty() && !among_newcomers) return newcomer_lacks ? causes : bad_newcomers;
  if (!silent.empty() && (last_attempt || change.boundary == Boundary::now)) return silent;
  if (!last_attempt) return {};
  if (!newcomers.empty() && !among_newcomers) return newcomers;
  if (!lacking.empty()) failing = lacking;
  return failing.empty() ? failing : std::vector<WorkerId>{std::ranges::max(failing)};
}

std::string why_not_meshed(const Worker& worker, Generation number) {
  if (worker.meshed != number) return "it did not connect to the others in time";
  if (worker.mesh_failure.empty()) return "others could not connect to it";
  return fmt::format("it could not connect to the others: {}", worker.mesh_failure);
}

// Names each member that did not answer, or else each that reported a failure: failures follow from silence.
std::string why_no_mesh(const State& state) {
  const GenerationPlan& change = *state.change;
  std::vector<std::string> silent, failing;
  for (const WorkerId id : change.members) {
    const Worker& worker = state.workers.at(id);
    const bool answered = worker.meshed == change.number;
    if (answered && worker.mesh_failure.empty()) continue;
    (answered ? failing : silent)
        .push_back(fmt::format("{}: {}", name_of(worker), why_not_meshed(worker, change.number)));
  }
  return fmt::format("{}", fmt::join(silent.empty() ? failing : silent, "; "));
}

// While others train, they do not begin to wait for a newcomer that may be lost.
bool newcomers_answer(const DecisionContext& context) {
  const State& state = context.state;
  if (!state.current || state.freezing) return true;
  return std::ranges::all_of(state.change->members, [&](WorkerId id) {
    const Worker& worker = state.workers.at(id);
    return is_member(worker) || newcomer_answers(context, worker);
  });
}

// Agents may have been lost since the change was begun. Each phase of a change needs a quorum of those that are left,
// and takes the tie-breaker when only half of them are.
void continue_change(DecisionContext& context) {
  const State& state = context.state;
  if (!state.change->committed) {
    if (has_quorum(context)) commit_when_known(context);
  } else if (state.change->boundary == Boundary::epoch && any_member_is_drained(state)) {
    begin_freeze(context, "a host is drained", std::nullopt);
  }
}

}  // namespace

void consider_change(DecisionContext& context) {
  State& state = context.state;
  if (state.ending || state.edits == 0) return;
  if (state.change) return continue_change(context);
  if (context.now < state.not_before) return;
  if (state.freezing && state.fruitless > state.policy.fruitless_limit) {
    return begin_stop(context, "the job keeps failing without getting any further", ExitCode::no_progress);
  }
  const bool running = state.current && !state.freezing;
  if (state.freezing && !all_frozen(state)) return;
  if (!has_quorum(context)) return;
  if (std::optional<NextMembership> next =
          running ? select_members_for_change(context) : select_members_to_start(context))
    begin_change(context, std::move(*next));
}

void on_meshed(DecisionContext& context, Worker& worker, const Meshed& meshed) {
  auto& change = context.state.change;
  if (!change || change->committed || meshed.generation != change->number) return;
  if (worker.invited != change->number || worker.meshed == change->number) return;
  worker.meshed = meshed.generation;
  worker.mesh_failure = meshed.failure;
  worker.mesh_failure_is_local = meshed.is_local;
  if (--change->awaited > 0) return;
  context.settle = true;
  const auto failed = [&](WorkerId id) { return !context.state.workers.at(id).mesh_failure.empty(); };
  if (std::ranges::any_of(change->members, failed)) {
    mesh_failed(context);
  } else {
    commit_when_known(context);
  }
}

void commit_when_known(DecisionContext& context) {
  const auto& change = context.state.change;
  if (!change || change->committed || change->awaited > 0 || !change_is_known(context.state)) return;
  if (newcomers_answer(context)) commit_change(context);
}

void mesh_failed(DecisionContext& context) {
  State& state = context.state;
  const Generation number = state.change->number;
  ++state.mesh_attempts;
  const std::vector<WorkerId> blamed = whom_to_blame(context);
  abandon_change(context, why_no_mesh(state));
  for (const WorkerId id : blamed) {
    if (const Worker* worker = context.find(id)) lose_worker(context, id, {.reason = why_not_meshed(*worker, number)});
  }
}

void change_is_late(DecisionContext& context) {
  const State& state = context.state;
  if (!has_quorum(context)) return abandon_change(context, why_no_quorum(state));
  if (state.change->awaited == 0) return abandon_change(context, "too few agents confirmed that they know of it");
  mesh_failed(context);
}

void announce_change_again(DecisionContext& context) {
  const auto& change = context.state.change;
  if (change && !change->committed) {
    announce_change(context, change->number, false, members_of(context.state, *change));
  }
}

void abandon_change(DecisionContext& context, const std::string& reason) {
  State& state = context.state;
  if (!state.change || state.change->committed) return;
  context.emit(EventKind::abandoned, {{"generation", state.change->number}, {"reason", reason}});
  state.change.reset();
  state.not_before = context.now + state.policy.between_changes * std::max(1, state.mesh_attempts);
}

void sign_of(DecisionContext& context, const Worker& worker, Generation number) {
  State& state = context.state;
  const auto& change = state.change;
  if (change && change->committed && number == change->number && is_member(worker)) switch_over(context);
  auto& current = state.current;
  if (current && number == current->number && worker.invited == number && !current->times.switched) {
    current->times.switched = context.now;
  }
}

void on_entered(DecisionContext& context, Worker& worker, const Entered& entered) {
  sign_of(context, worker, entered.generation);
  auto& current = context.state.current;
  if (!current || entered.generation != current->number) return;
  if (!is_member(worker) || worker.invited != current->number || worker.entered == current->number) return;
  worker.entered = entered.generation;
  worker.let_in.reset();
  worker.position = entered.position;
  current->start = std::max(current->start.value_or(TrainingPosition{}), entered.position);
  if (current->awaited > 0 && --current->awaited == 0) all_entered(context);
}

// A step needs all members, so all have entered, even when some of their Entered messages are still on the way.
void on_step(DecisionContext& context, Worker& worker) {
  State& state = context.state;
  GenerationPlan& current = *state.current;
  if (current.awaited > 0) all_entered(context);
  if (!current.stepped) first_step(context);
  if (state.furthest < worker.position) {
    state.furthest = worker.position;
    state.fruitless = state.failures_since_step = 0;
  }
  worker.stepped = true;
  Host& host = context.host_of(worker);
  if (host.logged || !host.wanted) return;
  host.logged = true;
  context.emit(EventKind::added, {{"host", worker.host}, {"generation", current.number}});
  context.add(LogMembership{true, worker.host});
}

void dismiss(DecisionContext& context, Worker& worker, const std::string& reason) {
  if (worker.phase == WorkerPhase::ending) return;
  auto& change = context.state.change;
  if (change && contains(change->members, worker.id)) abandon_change(context, "a newcomer is not needed any more");
  if (worker.phase == WorkerPhase::starting) {
    context.add(KillWorker{worker.id, false});
    return context.enter_phase(worker, WorkerPhase::ending);
  }
  if (std::exchange(worker.sent_leave, true)) return;
  context.enter_phase(worker, WorkerPhase::leaving);
  context.send(worker.id, Leave{reason});
}

}  // namespace dtrain::elastic
