// Deadlines, silence, hangs and stragglers. A Tick checks everything a few times a second; a heartbeat only records
// what it says.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/stats.hpp>

#include "compute_times.hpp"
#include "steps.hpp"

namespace dtrain::elastic {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Duration kLongTick{1'000};  // ticks further apart than this: the coordinator itself was held up
constexpr double kSmoothing = 0.2;    // of compute times: about the last five steps
constexpr std::size_t kStepsToJudge = 8;

// 0 where nothing was measured yet.
double median_step(const Pace& pace) {
  const std::size_t count = std::min(pace.steps_seen, pace.steps.size());
  return count == 0 ? 0 : median({pace.steps.begin(), pace.steps.begin() + static_cast<std::ptrdiff_t>(count)});
}

// Returns ids, because workers may be lost while they are handled.
template <typename Test>
std::vector<WorkerId> workers_where(const State& state, const Test& test) {
  std::vector<WorkerId> found;
  for (const auto& [id, worker] : state.workers) {
    if (test(worker)) found.push_back(id);
  }
  return found;
}

// True when all members are affected. Evicting them all would lose the state, so a longer limit applies.
bool are_all_members(const State& state, const std::vector<WorkerId>& affected) {
  if (!state.current || state.current->members.empty()) return false;
  return std::ranges::all_of(state.current->members, [&](WorkerId id) { return contains(affected, id); });
}

class Hangs {
 public:
  explicit Hangs(const DecisionContext& context)
      : context_(context), state_(context.state), step_(median_step(context.state.pace)) {
    for (const WorkerId id : state_.current->members) {
      furthest_ = std::max(furthest_, state_.workers.at(id).position);
      all_came_ = all_came_ && has_come(state_.workers.at(id));
    }
  }

  std::vector<WorkerId> find() const {
    std::vector<WorkerId> hung = beyond(1);
    return are_all_members(state_, hung) ? beyond(kPatienceWhenAll) : hung;
  }

  double seconds_in_phase(const Worker& worker) const {
    return worker.progress.seconds_in_phase +
           Seconds(context_.now - std::max(worker.progress_at, state_.heard_floor)).count();
  }

 private:
  std::vector<WorkerId> beyond(double patience) const {
    std::vector<WorkerId> found;
    for (const WorkerId id : state_.current->members) {
      const Worker& worker = state_.workers.at(id);
      if (worker.progress_at != Time{} && seconds_in_phase(worker) > patience * limit(worker) && is_to_blame(worker)) {
        found.push_back(id);
      }
    }
    return found;
  }

  bool has_come(const Worker& worker) const { return worker.progress.generation >= state_.current->number; }

  // A member that waits for others is not to blame, unless it is alone or the others are further. A newcomer that waits
  // for the state is behind too, but not to blame while the member that has the state is absent: see evict_absent().
  bool is_to_blame(const Worker& worker) const {
    if (!waits_for_others(worker.progress.phase) || state_.current->members.size() == 1) return true;
    return worker.position < furthest_ && (all_came_ || !has_come(worker));
  }

  double limit(const Worker& worker) const {
    const HangFloors& floors = state_.policy.hang_floors;
    const double factor = state_.policy.hang_factor;
    const auto at_least = [](Duration floor, double learned) { return std::max(Seconds(floor).count(), learned); };
    switch (worker.progress.phase) {
      case Phase::evaluating:
        return at_least(floors.evaluating, factor / 4 * state_.pace.evaluating);
      case Phase::saving:
        return at_least(floors.saving, factor / 4 * state_.pace.saving);
      case Phase::reducing:
      case Phase::entering:
      case Phase::holding:
        return at_least(floors.waiting, factor * step_);
      default:
        break;
    }
    if (!worker.stepped) return at_least(floors.first_step, factor * step_);
    return at_least(worker.progress.phase == Phase::loading ? floors.loading : floors.computing, factor * step_);
  }

  const DecisionContext& context_;
  const State& state_;
  const double step_;
  TrainingPosition furthest_;
  bool all_came_ = true;
};

void evict_hung(DecisionContext& context) {
  if (!context.state.current || context.state.freezing) return;
  const Hangs hangs(context);
  std::vector<Loss> losses;
  for (const WorkerId id : hangs.find()) {
    const Worker& worker = context.state.workers.at(id);
    const std::string reason = fmt::format("it made no progress for {:.1f} s while {}", hangs.seconds_in_phase(worker),
                                           phase_name(worker.progress.phase));
    const auto in_phase = std::chrono::duration_cast<Time::duration>(Seconds(hangs.seconds_in_phase(worker)));
    losses.push_back({id, {.reason = reason, .hung = true, .since = context.now - in_phase}});
  }
  if (!losses.empty()) lose_workers(context, losses);
}

// Evicts members that were let into a generation and do not enter: their trainer hangs outside of any phase. Others
// that wait for such a member lose patience first, so that generations follow each other; the time counts from the
// first that it was let into. For one that still saves there is the limit of that phase.
void evict_absent(DecisionContext& context) {
  const State& state = context.state;
  if (!state.current || state.freezing || state.current->awaited == 0) return;
  const GenerationPlan& current = *state.current;
  const std::optional<Time> since = current.times.switched ? current.times.switched : current.times.meshed;
  const auto absent_for = [&](Duration limit) {
    std::vector<WorkerId> absent = current.members;
    std::erase_if(absent, [&](WorkerId id) {
      const Worker& worker = state.workers.at(id);
      return worker.progress.generation == current.number || worker.progress.phase == Phase::saving ||
             !context.passed(worker.let_in.value_or(*since), limit);
    });
    return absent;
  };
  const Duration limit = state.policy.hang_floors.waiting;
  std::vector<WorkerId> absent = absent_for(limit);
  if (are_all_members(state, absent)) absent = absent_for(limit * kPatienceWhenAll);
  std::vector<Loss> losses;
  for (const WorkerId id : absent)
    losses.push_back({id, {.reason = "it did not enter the generation that it was let into", .hung = true}});
  if (!losses.empty()) lose_workers(context, losses);
}

// Newcomers that keep members with the state waiting: these cannot make a step before all have entered.
std::vector<WorkerId> awaited_newcomers(const State& state) {
  std::vector<WorkerId> newcomers;
  if (!state.current || state.freezing || state.current->stepped) return newcomers;
  bool any_waits = false;
  for (const WorkerId id : state.current->members) {
    const bool trained = state.workers.at(id).stepped;
    any_waits |= trained;
    if (!trained) newcomers.push_back(id);
  }
  if (!any_waits) newcomers.clear();
  return newcomers;
}

void evict_silent(DecisionContext& context) {
  const State& state = context.state;
  const auto silent_for = [&](Duration limit) {
    return workers_where(state, [&](const Worker& worker) {
      return is_usable(worker) && worker.phase != WorkerPhase::starting && context.passed(worker.heard, limit);
    });
  };
  const Duration limit = state.policy.heartbeat_timeout;
  std::vector<WorkerId> silent = silent_for(limit);
  if (are_all_members(state, silent)) silent = silent_for(limit * kPatienceWhenAll);
  for (const WorkerId id : awaited_newcomers(state)) {
    if (!contains(silent, id) && !newcomer_answers(context, state.workers.at(id))) silent.push_back(id);
  }
  std::vector<Loss> losses;
  for (const WorkerId id : silent) {
    const Seconds silence = context.now - state.workers.at(id).heard;
    const std::string reason = fmt::format("nothing was heard of it for {:.1f} s", silence.count());
    losses.push_back({id, {.reason = reason, .hung = true}});
  }
  if (!losses.empty()) lose_workers(context, losses);
}

void evict_unfrozen(DecisionContext& context) {
  const auto& freezing = context.state.freezing;
  if (!freezing || freezing->awaited == 0) return;
  const std::vector<WorkerId> unfrozen = unfrozen_members(context.state);
  const int patience = are_all_members(context.state, unfrozen) ? kPatienceWhenAll : 1;
  if (!context.passed(freezing->since, context.state.policy.freeze_timeout * patience)) return;
  std::vector<Loss> losses;
  for (const WorkerId id : unfrozen) {
    losses.push_back({id, {.reason = "it did not stop with the others", .hung = true}});
  }
  lose_workers(context, losses);
}

void end_overdue(DecisionContext& context, WorkerId id) {
  Worker* worker = context.find(id);
  if (worker == nullptr) return;
  const Policy& policy = context.state.policy;
  switch (worker->phase) {
    case WorkerPhase::starting:
      if (context.passed(worker->since, policy.hello_timeout)) {
        lose_worker(context, id, {.reason = "it was started, but did not connect in time"});
      }
      return;
    case WorkerPhase::preparing:
      if (context.passed(worker->since, policy.prepare_timeout)) {
        lose_worker(context, id, {.reason = "it was not ready in time", .hung = true});
      }
      return;
    case WorkerPhase::leaving:
      if (context.passed(worker->since, policy.leave_timeout)) {
        context.add(KillWorker{id, true});
        context.enter_phase(*worker, WorkerPhase::ending);
      }
      return;
    case WorkerPhase::ending:
      if (context.passed(worker->since, policy.kill_timeout)) {
        const std::string host = worker->host;
        context.add(EndHost{host});
        lose_host(context, context.state.hosts.at(host), "a process there does not end");
      }
      return;
    case WorkerPhase::ready:
    case WorkerPhase::member:
      return;
  }
}

void watch_agents(DecisionContext& context) {
  const Policy& policy = context.state.policy;
  for (auto& [name, host] : context.state.hosts) {
    if (host.agent == AgentState::starting && context.passed(host.agent_since, policy.host_timeout)) {
      context.add(EndHost{name});
      lose_host(context, host, "its agent did not connect in time");
    }
    if (host.agent == AgentState::ending && context.passed(host.agent_since, policy.kill_timeout)) {
      lose_host(context, host, "its agent did not end in time");
    }
  }
}

void watch_change(DecisionContext& context) {
  const auto& change = context.state.change;
  if (change && !change->committed && context.passed(*change->times.begun, context.state.policy.mesh_timeout)) {
    change_is_late(context);
  }
}

void watch_hold(DecisionContext& context) {
  const State& state = context.state;
  if (state.ending) return;
  const Duration limit = state.policy.hold_timeout;
  if (state.cut_off && context.passed(*state.cut_off, limit)) {
    return end_at_once(context, "half or more of the agents did not come back", ExitCode::resumable);
  }
  if (state.freezing && state.freezing->holding_since && context.passed(*state.freezing->holding_since, limit)) {
    return begin_stop(context, "too few workers for too long", ExitCode::resumable);
  }
  const Duration admission =
      state.policy.admission_check == AdmissionCheckFor::all_hosts ? state.policy.admission_timeout : Duration(0);
  const Duration longest = state.policy.prepare_timeout + admission;
  const bool none_ready = !state.current && !state.change && !state.start_wait_since;
  if (none_ready && state.edits > 0 && context.passed(state.begun, limit + longest)) {
    begin_stop(context, "too few workers could be started", ExitCode::failed);
  }
}

void forgive(DecisionContext& context) {
  for (const auto& [id, worker] : context.state.workers) {
    if (!is_member(worker) || !context.passed(worker.since, context.state.policy.forgive_after)) continue;
    context.host_of(worker).failures = 0;
  }
}

void name_stragglers(DecisionContext& context) {
  State& state = context.state;
  if (!state.current || state.current->members.size() < 2 || state.pace.steps_seen < kStepsToJudge) return;
  const ComputeTimes times(state);
  for (const WorkerId id : state.current->members) {
    Worker& worker = state.workers.at(id);
    const double usual = times.usual_of_others(worker);
    const bool slow = usual > 0 && worker.compute_seconds > state.policy.straggler_factor * usual;
    if (!slow) worker.said_straggler = false;
    std::optional<Time>& said = context.host_of(worker).said_straggler;
    const bool lately = said && context.now - *said < state.policy.between_straggler_lines;
    if (!slow || worker.said_straggler || lately) continue;
    worker.said_straggler = true;
    said = context.now;
    context.emit(EventKind::straggler, worker,
                 {{"score", worker.compute_seconds / usual},
                  {"compute_seconds", worker.compute_seconds},
                  {"median_seconds", usual}});
    context.say(fmt::format("{} computes a step in {:.3g} s, the others in {:.3g} s: everybody waits for it",
                            name_of(worker), worker.compute_seconds, usual),
                fmt::format("see what else runs there, or 'dtrain hosts drain {}'", worker.host), Say::Kind::warning);
  }
}

void note_pace(State& state, Worker& worker, const Progress& next) {
  const Progress& last = worker.progress;
  const bool phase_ended = next.phase != last.phase || next.seconds_in_phase < last.seconds_in_phase;
  Pace& pace = state.pace;
  if (phase_ended && last.phase == Phase::evaluating)
    pace.evaluating = std::max(pace.evaluating, last.seconds_in_phase);
  if (phase_ended && last.phase == Phase::saving) pace.saving = std::max(pace.saving, last.seconds_in_phase);
  if (!(worker.position < next.position) || next.step_seconds <= 0) return;
  pace.steps[pace.steps_seen++ % pace.steps.size()] = next.step_seconds;
  const double before = worker.compute_seconds > 0 ? worker.compute_seconds : next.compute_seconds;
  worker.compute_seconds = before + kSmoothing * (next.compute_seconds - before);
}

// A worker counts since its process began.
void note_traffic(comm::Traffic& all, const comm::Traffic& before, const comm::Traffic& now) {
  all.sent += now.sent - std::min(before.sent, now.sent);
  all.received += now.received - std::min(before.received, now.received);
}

}  // namespace

bool newcomer_answers(const DecisionContext& context, const Worker& worker) {
  return !context.passed(worker.heard, context.state.policy.newcomer_timeout());
}

void note_progress(DecisionContext& context, Worker& worker, const Progress& progress) {
  State& state = context.state;
  sign_of(context, worker, progress.generation);
  if (worker.phase == WorkerPhase::starting) return;
  if (is_member(worker)) note_pace(state, worker, progress);
  if (is_member(worker) && worker.position < progress.position) note_further(context);
  note_traffic(state.traffic, worker.progress.traffic, progress.traffic);
  worker.progress = progress;
  worker.progress_at = context.now;
  worker.position = progress.position;
  const auto& current = state.current;
  if (!is_member(worker) || !current || progress.generation != current->number) return;
  worker.let_in.reset();
  if (worker.entered == current->number && current->start && *current->start < progress.position)
    on_step(context, worker);
}

void watch(DecisionContext& context) {
  State& state = context.state;
  if (state.last_tick != Time{} && context.now - state.last_tick > kLongTick) state.heard_floor = context.now;
  state.last_tick = context.now;
  evict_silent(context);
  evict_unfrozen(context);
  evict_hung(context);
  evict_absent(context);
  for (const WorkerId id : context.worker_ids()) end_overdue(context, id);
  watch_agents(context);
  watch_admission_checks(context);
  watch_change(context);
  watch_hold(context);
  watch_standing(context);
  forgive(context);
  name_stragglers(context);
}

}  // namespace dtrain::elastic
