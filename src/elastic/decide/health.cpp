// Deadlines, silence, hangs and stragglers. Runs over everything a few times a second; heartbeats only leave a note.
#include <fmt/format.h>

#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Duration kLongTick{1'000};  // ticks further apart than this: the coordinator itself was held up
constexpr int kPatienceWhenAll = 5;   // times the limit, where all members look ill: it may be us, or a shared disk
constexpr double kSmoothing = 0.2;    // of compute times: about the last five steps
constexpr std::size_t kStepsToJudge = 8;

bool waits_for_others(Phase phase) {
  return phase == Phase::reducing || phase == Phase::entering || phase == Phase::holding;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double median_step(const Pace& pace) {
  const std::size_t count = std::min(pace.steps_seen, pace.steps.size());
  return median({pace.steps.begin(), pace.steps.begin() + static_cast<std::ptrdiff_t>(count)});
}

// Copies nothing that may change while workers are lost.
template <typename Test>
std::vector<WorkerId> workers_where(const State& state, const Test& test) {
  std::vector<WorkerId> found;
  for (const auto& [id, worker] : state.workers) {
    if (test(worker)) found.push_back(id);
  }
  return found;
}

// Not everybody at once, unless it lasts: with the last one the state is lost.
bool is_epidemic(const State& state, const std::vector<WorkerId>& ill) {
  if (!state.current || state.current->members.empty()) return false;
  return std::ranges::all_of(state.current->members, [&](WorkerId id) { return contains(ill, id); });
}

class Hangs {
 public:
  explicit Hangs(const Turn& turn) : turn_(turn), state_(turn.state), step_(median_step(turn.state.pace)) {
    for (const WorkerId id : state_.current->members) {
      furthest_ = std::max(furthest_, state_.workers.at(id).standing);
      all_came_ = all_came_ && has_come(state_.workers.at(id));
    }
  }

  std::vector<WorkerId> find() const {
    std::vector<WorkerId> hung = beyond(1);
    return is_epidemic(state_, hung) ? beyond(kPatienceWhenAll) : hung;
  }

  double seconds_in_phase(const Worker& worker) const {
    return worker.progress.seconds_in_phase +
           Seconds(turn_.now - std::max(worker.progress_at, state_.heard_floor)).count();
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

  // Who waits for others is not to blame, unless there are none, or they are further. A newcomer that waits for the
  // state is behind too, but through no fault of its own while the one who has it does not come: see evict_absent().
  bool is_to_blame(const Worker& worker) const {
    if (!waits_for_others(worker.progress.phase) || state_.current->members.size() == 1) return true;
    return worker.standing < furthest_ && (all_came_ || !has_come(worker));
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

  const Turn& turn_;
  const State& state_;
  const double step_;
  Standing furthest_;
  bool all_came_ = true;
};

void evict_hung(Turn& turn) {
  if (!turn.state.current || turn.state.freezing) return;
  const Hangs hangs(turn);
  std::vector<Loss> losses;
  for (const WorkerId id : hangs.find()) {
    const Worker& worker = turn.state.workers.at(id);
    const std::string reason = fmt::format("it made no progress for {:.1f} s while {}", hangs.seconds_in_phase(worker),
                                           phase_name(worker.progress.phase));
    losses.push_back({id, {.reason = reason, .hung = true}});
  }
  if (!losses.empty()) lose_workers(turn, losses);
}

// Who was let into a generation and does not come: its trainer is stuck where nobody sees it.
void evict_absent(Turn& turn) {
  const State& state = turn.state;
  if (!state.current || state.freezing || state.current->awaited == 0) return;
  const Roster& current = *state.current;
  const std::optional<Time> since = current.times.switched ? current.times.switched : current.times.meshed;
  const auto absent_for = [&](Duration limit) {
    std::vector<WorkerId> absent = current.members;
    std::erase_if(absent, [&](WorkerId id) { return state.workers.at(id).progress.generation == current.number; });
    if (!turn.passed(*since, limit)) absent.clear();
    return absent;
  };
  const Duration limit = state.policy.hang_floors.waiting;
  std::vector<WorkerId> absent = absent_for(limit);
  if (is_epidemic(state, absent)) absent = absent_for(limit * kPatienceWhenAll);
  std::vector<Loss> losses;
  for (const WorkerId id : absent)
    losses.push_back({id, {.reason = "it did not come when it was let in", .hung = true}});
  if (!losses.empty()) lose_workers(turn, losses);
}

void evict_silent(Turn& turn) {
  const State& state = turn.state;
  const auto silent_for = [&](Duration limit) {
    return workers_where(state, [&](const Worker& worker) {
      return is_usable(worker) && worker.phase != WorkerPhase::starting && turn.passed(worker.heard, limit);
    });
  };
  const Duration limit = state.policy.heartbeat_timeout;
  std::vector<WorkerId> silent = silent_for(limit);
  if (is_epidemic(state, silent)) silent = silent_for(limit * kPatienceWhenAll);
  std::vector<Loss> losses;
  for (const WorkerId id : silent) {
    const Seconds silence = turn.now - state.workers.at(id).heard;
    const std::string reason = fmt::format("nothing was heard of it for {:.1f} s", silence.count());
    losses.push_back({id, {.reason = reason, .hung = true}});
  }
  if (!losses.empty()) lose_workers(turn, losses);
}

void evict_unfrozen(Turn& turn) {
  const auto& freezing = turn.state.freezing;
  if (!freezing || freezing->awaited == 0) return;
  const std::vector<WorkerId> thawed = thawed_members(turn.state);
  const int patience = is_epidemic(turn.state, thawed) ? kPatienceWhenAll : 1;
  if (!turn.passed(freezing->since, turn.state.policy.freeze_timeout * patience)) return;
  std::vector<Loss> losses;
  for (const WorkerId id : thawed) {
    losses.push_back({id, {.reason = "it did not stop with the others", .hung = true}});
  }
  lose_workers(turn, losses);
}

void end_overdue(Turn& turn, WorkerId id) {
  Worker* worker = turn.find(id);
  if (worker == nullptr) return;
  const Policy& policy = turn.state.policy;
  switch (worker->phase) {
    case WorkerPhase::starting:
      if (turn.passed(worker->since, policy.hello_timeout)) {
        lose_worker(turn, id, {.reason = "it was started, but did not connect in time"});
      }
      return;
    case WorkerPhase::preparing:
      if (turn.passed(worker->since, policy.prepare_timeout)) {
        lose_worker(turn, id, {.reason = "it was not ready in time", .hung = true});
      }
      return;
    case WorkerPhase::leaving:
      if (turn.passed(worker->since, policy.leave_timeout)) {
        turn.add(KillWorker{id, true});
        turn.enter_phase(*worker, WorkerPhase::ending);
      }
      return;
    case WorkerPhase::ending:
      if (turn.passed(worker->since, policy.kill_timeout)) {
        const std::string host = worker->host;
        turn.add(EndHost{host});
        lose_host(turn, turn.state.hosts.at(host), "a process there does not end");
      }
      return;
    case WorkerPhase::ready:
    case WorkerPhase::member:
      return;
  }
}

void watch_agents(Turn& turn) {
  const Policy& policy = turn.state.policy;
  for (auto& [name, host] : turn.state.hosts) {
    if (host.agent == AgentState::starting && turn.passed(host.agent_since, policy.host_timeout)) {
      turn.add(EndHost{name});
      lose_host(turn, host, "its agent did not connect in time");
    }
    if (host.agent == AgentState::ending && turn.passed(host.agent_since, policy.kill_timeout)) {
      lose_host(turn, host, "its agent did not end in time");
    }
  }
}

void watch_change(Turn& turn) {
  const auto& change = turn.state.change;
  if (change && !change->committed && turn.passed(*change->times.begun, turn.state.policy.mesh_timeout)) {
    mesh_failed(turn);
  }
}

void watch_hold(Turn& turn) {
  const State& state = turn.state;
  if (state.ending) return;
  const Duration limit = state.policy.hold_timeout;
  if (state.cut_off && turn.passed(*state.cut_off, limit)) {
    return end_at_once(turn, "half or more of the agents did not come back", ExitCode::resumable);
  }
  if (state.freezing && state.freezing->holding_since && turn.passed(*state.freezing->holding_since, limit)) {
    return begin_stop(turn, "too few workers for too long", ExitCode::resumable);
  }
  const Duration gate = state.policy.gate == GateFor::everybody ? state.policy.gate_timeout : Duration(0);
  const Duration longest = state.policy.prepare_timeout + gate;
  const bool nobody_ready = !state.current && !state.change && !state.gathering_since;
  if (nobody_ready && state.edits > 0 && turn.passed(state.begun, limit + longest)) {
    begin_stop(turn, "too few workers could be started", ExitCode::failed);
  }
}

void forgive(Turn& turn) {
  for (const auto& [id, worker] : turn.state.workers) {
    if (!is_member(worker) || !turn.passed(worker.since, turn.state.policy.forgive_after)) continue;
    turn.host_of(worker).failures = 0;
  }
}

void name_stragglers(Turn& turn) {
  State& state = turn.state;
  if (!state.current || state.current->members.size() < 2 || state.pace.steps_seen < kStepsToJudge) return;
  std::vector<double> times;
  for (const WorkerId id : state.current->members) times.push_back(state.workers.at(id).compute_seconds);
  const double usual = median(std::move(times));
  for (const WorkerId id : state.current->members) {
    Worker& worker = state.workers.at(id);
    const bool slow = usual > 0 && worker.compute_seconds > state.policy.straggler_factor * usual;
    if (slow == std::exchange(worker.said_straggler, slow) || !slow) continue;
    turn.emit("straggler", worker,
              {{"score", worker.compute_seconds / usual},
               {"compute_seconds", worker.compute_seconds},
               {"median_seconds", usual}});
    turn.say(fmt::format("{} computes a step in {:.3g} s, the others in {:.3g} s: everybody waits for it",
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
  if (!(worker.standing < next.standing) || next.step_seconds <= 0) return;
  pace.steps[pace.steps_seen++ % pace.steps.size()] = next.step_seconds;
  const double before = worker.compute_seconds > 0 ? worker.compute_seconds : next.compute_seconds;
  worker.compute_seconds = before + kSmoothing * (next.compute_seconds - before);
}

}  // namespace

void note_progress(Turn& turn, Worker& worker, const Progress& progress) {
  State& state = turn.state;
  sign_of(turn, worker, progress.generation);
  if (worker.phase == WorkerPhase::starting) return;
  if (is_member(worker)) note_pace(state, worker, progress);
  worker.progress = progress;
  worker.progress_at = turn.now;
  worker.standing = progress.standing;
  const auto& current = state.current;
  if (!is_member(worker) || !current || progress.generation != current->number) return;
  if (worker.entered == current->number && current->start && *current->start < progress.standing) on_step(turn, worker);
}

void watch(Turn& turn) {
  State& state = turn.state;
  if (state.last_tick != Time{} && turn.now - state.last_tick > kLongTick) state.heard_floor = turn.now;
  state.last_tick = turn.now;
  evict_silent(turn);
  evict_unfrozen(turn);
  evict_hung(turn);
  evict_absent(turn);
  for (const WorkerId id : turn.worker_ids()) end_overdue(turn, id);
  watch_agents(turn);
  watch_gates(turn);
  watch_change(turn);
  watch_hold(turn);
  forgive(turn);
  name_stragglers(turn);
}

double straggler_score(const State& state, const Worker& worker) {
  if (!state.current || !is_member(worker) || worker.compute_seconds <= 0) return 1;
  std::vector<double> times;
  for (const WorkerId id : state.current->members) times.push_back(state.workers.at(id).compute_seconds);
  const double usual = median(std::move(times));
  return usual > 0 ? worker.compute_seconds / usual : 1;
}

}  // namespace dtrain::elastic
