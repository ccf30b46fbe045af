// What goes wrong: a worker or a host is lost. The others freeze, and those that answer go on.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/process_end.hpp>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr std::size_t kShownLines = 20;

// Twice as long with every failure.
void quarantine(Turn& turn, Host& host, const std::string& reason) {
  const Policy& policy = turn.state.policy;
  const int doublings = std::min(host.failures++, 20);
  const Duration time = std::min(policy.quarantine_base * (std::int64_t{1} << doublings), policy.quarantine_cap);
  host.quarantined_until = turn.now + time;
  host.last_failure = reason;
  host.next_command.clear();
}

void remember_first(Turn& turn, const Worker& worker, const Fault& fault) {
  State& state = turn.state;
  if (state.first_failure) return;
  state.first_failure = Failure{.worker = worker.id,
                                .host = worker.host,
                                .rank = rank_of(state, worker.id).value_or(-1),
                                .generation = state.current ? state.current->number : 0,
                                .reason = fault.reason,
                                .last_lines = fault.last_lines};
}

void report(Turn& turn, const Worker& worker, const Fault& fault) {
  const std::optional<int> rank = rank_of(turn.state, worker.id);
  turn.emit("failed", worker,
            {{"rank", rank ? Json(*rank) : Json()},
             {"generation", turn.state.current ? Json(turn.state.current->number) : Json()},
             {"reason", fault.reason},
             {"last_lines", lines_json(fault.last_lines)}});
  const std::string rank_text = rank ? fmt::format(", rank {}", *rank) : "";
  turn.say(fmt::format("{}{} failed: {}", name_of(worker), rank_text, fault.reason),
           turn.state.policy.elastic && !turn.state.ending && turn.state.hosts.at(worker.host).wanted
               ? fmt::format("the others go on; {} is tried again by itself", worker.host)
               : "",
           Say::Kind::error);
}

void show_lines(Turn& turn, const Worker& worker, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  const std::size_t count = std::min(lines.size(), kShownLines);
  turn.say(
      fmt::format("last lines of {}:\n  {}", name_of(worker), fmt::join(lines.end() - count, lines.end(), "\n  ")));
}

void note_exit(Turn& turn, const WorkerExited& exited) {
  auto& first = turn.state.first_failure;
  if (!first || first->worker != exited.worker) return;
  first->exit_code = exited.exit_code;
  first->signal = exited.signal;
}

// The last words come with the end of the process, which may be known long after the failure.
void complete_failure(Turn& turn, const Worker& worker, const WorkerExited& exited) {
  note_exit(turn, exited);
  auto& first = turn.state.first_failure;
  if (first && first->worker == worker.id && first->last_lines.empty()) first->last_lines = exited.last_lines;
  turn.emit("exited", worker,
            {{"reason", "it " + describe_end(exited.exit_code, exited.signal)},
             {"last_lines", lines_json(exited.last_lines)}});
  show_lines(turn, worker, exited.last_lines);
}

struct Condemned {
  WorkerId id = 0;
  bool was_member = false;
  Time heard{};
  std::string why;
};

// From here on its messages are ignored.
Condemned condemn(Turn& turn, const Loss& loss) {
  Worker& worker = turn.state.workers.at(loss.worker);
  const Fault& fault = loss.fault;
  if (is_usable(worker)) {
    remember_first(turn, worker, fault);
    report(turn, worker, fault);
    quarantine(turn, turn.host_of(worker), fault.reason);
    ++turn.state.failures;
  }
  Condemned condemned{worker.id, is_member(worker), worker.heard,
                      fmt::format("{} failed: {}", name_of(worker), fault.reason)};
  if (fault.remains == Remains::process && !fault.exits) turn.add(KillWorker{worker.id, fault.hung});
  show_lines(turn, worker, fault.last_lines);
  turn.enter_phase(worker, WorkerPhase::ending);
  return condemned;
}

// A generation that it is in, or was to be in, cannot go on.
void leave_generations(Turn& turn, const Condemned& gone) {
  State& state = turn.state;
  auto& change = state.change;
  const bool was_coming = change && contains(change->members, gone.id);
  if (was_coming) abandon_change(turn, gone.why);
  if (change) std::erase(change->leaving, gone.id);
  if (!gone.was_member && !(was_coming && change)) return;
  if (gone.was_member) std::erase(state.current->members, gone.id);
  if (!state.freezing) return begin_freeze(turn, gone.why, gone.heard);
  state.freezing->awaited = thawed_members(state).size();
  if (state.ending && all_frozen(state)) stop_frozen(turn);
}

// Every host has failed, and none is on its way.
bool nothing_can_start(const State& state) {
  const auto usable = [](const auto& entry) { return is_usable(entry.second); };
  const auto failed = [&](const std::string& name) { return !state.hosts.at(name).last_failure.empty(); };
  return std::ranges::none_of(state.workers, usable) && std::ranges::all_of(state.order, failed);
}

void check_limits(Turn& turn) {
  const State& state = turn.state;
  if (state.ending || !state.first_failure) return;
  const Failure& failure = *state.first_failure;
  const ExitCode code = failure.unreachable ? ExitCode::refused : ExitCode::failed;
  const std::string who =
      failure.worker == 0 ? failure.host : fmt::format("worker {} on {}", failure.worker, failure.host);
  const std::string first = fmt::format("{}: {}", who, failure.reason);
  if (!state.policy.elastic) return end_at_once(turn, first, code);
  // What never made a step fails for a reason that waiting does not cure: data, options, memory.
  const bool never_trained = state.pace.steps_seen == 0;
  if (never_trained && nothing_can_start(state)) return end_at_once(turn, first, code);
  if (state.failures > state.policy.failure_limit) {
    return begin_stop(turn, fmt::format("{} failures; the first was {}", state.failures, first), code);
  }
}

}  // namespace

void lose_workers(Turn& turn, const std::vector<Loss>& losses) {
  // All are condemned before the first one is mourned: none of them is asked to freeze.
  std::vector<Condemned> condemned;
  for (const Loss& loss : losses) {
    if (turn.find(loss.worker) != nullptr) condemned.push_back(condemn(turn, loss));
  }
  for (const Condemned& each : condemned) leave_generations(turn, each);
  for (const Loss& loss : losses) {
    if (loss.fault.remains == Remains::nothing) erase_worker(turn, loss.worker);
  }
  turn.settle = true;
  check_limits(turn);
}

void lose_worker(Turn& turn, WorkerId id, const Fault& fault) { lose_workers(turn, {{id, fault}}); }

void lose_host(Turn& turn, Host& host, const std::string& reason) {
  const AgentState agent = std::exchange(host.agent, AgentState::none);
  if (agent == AgentState::none) return;
  const bool asked = agent == AgentState::ending;
  const int failures = host.failures;
  const std::string why = fmt::format("its host's agent is gone: {}", reason);
  turn.emit("host_down", {{"host", host.line.name}, {"reason", asked ? "no worker is needed there" : reason}});
  std::vector<Loss> losses;
  for (const WorkerId id : host.slots) losses.push_back({id, {.reason = why, .remains = Remains::nothing}});
  lose_workers(turn, losses);
  if (asked) return;
  host.failures = failures;  // one failure, however many workers were there
  quarantine(turn, host, reason);
  if (agent == AgentState::starting) {
    turn.say(fmt::format("{} could not be started: {}", host.line.name, reason), {}, Say::Kind::error);
    if (!turn.state.first_failure) {
      turn.state.first_failure = Failure{.host = host.line.name, .reason = reason, .unreachable = true};
    }
    ++turn.state.failures;
  }
  check_limits(turn);
}

void fail_host(Turn& turn, Host& host, const std::string& reason) {
  quarantine(turn, host, reason);
  if (!turn.state.first_failure) turn.state.first_failure = Failure{.host = host.line.name, .reason = reason};
  turn.settle = true;
  check_limits(turn);
}

void worker_exited(Turn& turn, const WorkerExited& exited) {
  const Worker* worker = turn.find(exited.worker);
  if (worker == nullptr) return;
  if (is_usable(*worker)) {
    const Fault fault{.reason = "it " + describe_end(exited.exit_code, exited.signal),
                      .remains = Remains::nothing,
                      .last_lines = exited.last_lines};
    lose_worker(turn, exited.worker, fault);
    return note_exit(turn, exited);
  }
  if (worker->phase == WorkerPhase::ending) complete_failure(turn, *worker, exited);
  erase_worker(turn, exited.worker);
}

void erase_worker(Turn& turn, WorkerId id) {
  const Worker* worker = turn.find(id);
  if (worker == nullptr) return;
  auto& slots = turn.host_of(*worker).slots;
  std::ranges::replace(slots, id, WorkerId{0});
  for (auto* roster : {&turn.state.current, &turn.state.change}) {
    if (!*roster) continue;
    std::erase((*roster)->members, id);
    std::erase((*roster)->leaving, id);
  }
  turn.state.workers.erase(id);
}

void begin_freeze(Turn& turn, const std::string& reason, std::optional<Time> cause) {
  State& state = turn.state;
  abandon_change(turn, reason);
  Roster& current = *state.current;
  const Generation number = state.change ? state.change->number : current.number;
  state.change.reset();
  state.freezing = Freezing{.number = number, .reason = reason, .since = turn.now};
  Freezing& freezing = *state.freezing;
  freezing.times.cause = cause.value_or(turn.now);
  freezing.times.noticed = turn.now;
  const std::vector<WorkerId> thawed = thawed_members(state);
  freezing.awaited = thawed.size();
  turn.emit("freeze", {{"generation", number}, {"reason", reason}});
  turn.send(thawed, Freeze{number});
  for (const WorkerId id : current.leaving) {
    if (Worker* worker = turn.find(id)) dismiss(turn, *worker, "removed from the job");
  }
  state.not_before = turn.now;
  turn.settle = true;
  ++state.fruitless;
  if (state.ending && all_frozen(state)) stop_frozen(turn);
}

std::vector<WorkerId> thawed_members(const State& state) {
  std::vector<WorkerId> thawed;
  for (const WorkerId id : state.current->members) {
    const Worker& worker = state.workers.at(id);
    if (is_member(worker) && worker.frozen < state.freezing->number) thawed.push_back(id);
  }
  return thawed;
}

void on_frozen(Turn& turn, Worker& worker, Generation number, const Standing& standing) {
  const auto& current = turn.state.current;
  const bool stale = !current || (number < current->number && worker.entered == current->number);
  if (!is_member(worker) || stale) return;
  worker.standing = standing;
  auto& freezing = turn.state.freezing;
  const bool was_awaited = freezing && worker.frozen < freezing->number;
  worker.frozen = std::max(worker.frozen, number);
  if (!was_awaited || worker.frozen < freezing->number) return;
  if (--freezing->awaited > 0) return;
  turn.settle = true;
  if (turn.state.ending) stop_frozen(turn);
}

}  // namespace dtrain::elastic
