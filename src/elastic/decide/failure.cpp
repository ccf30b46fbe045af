// Losses of workers and hosts. The other members freeze, and those that answer continue.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include <dtrain/base/wait_status.hpp>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr std::size_t kShownLines = 20;

enum class Record { none, trained };  // what the host's worker did before it failed

// A host that trained is tried again at once after its first failure. Every other wait doubles with each failure.
Duration quarantine_time(const Policy& policy, int failures, Record record) {
  const int doublings = failures - (record == Record::trained ? 1 : 0);
  if (doublings < 0) return Duration(0);
  return std::min(policy.quarantine_base * (std::int64_t{1} << std::min(doublings, 20)), policy.quarantine_cap);
}

void quarantine(DecisionContext& context, Host& host, const std::string& reason, Record record) {
  host.quarantined_until = context.now + quarantine_time(context.state.policy, host.failures++, record);
  host.last_failure = reason;
  host.next_command.clear();
  host.forget_key.clear();
}

void remember_first(DecisionContext& context, const Worker& worker, const Fault& fault) {
  State& state = context.state;
  if (state.first_failure) {
    if (!fault.hint.empty()) state.first_failure->hint = fault.hint;  // that of the failure that ends the job
    return;
  }
  state.first_failure = Failure{.worker = worker.id,
                                .host = worker.host,
                                .rank = rank_of(state, worker.id).value_or(-1),
                                .generation = state.current ? state.current->number : 0,
                                .reason = fault.reason,
                                .hint = fault.hint,
                                .last_lines = fault.last_lines};
}

// What the loss means to the user.
std::string consequence(const State& state, const Worker& worker, const std::vector<Loss>& losses) {
  if (!state.policy.elastic || state.ending || !state.hosts.at(worker.host).wanted) return {};
  const auto stays = [&](const auto& entry) {
    const auto is_lost = [&](const Loss& loss) { return loss.worker == entry.first; };
    return is_member(entry.second) && entry.first != worker.id && std::ranges::none_of(losses, is_lost);
  };
  std::string restart = fmt::format("{} is started again automatically", worker.host);
  if (std::ranges::any_of(state.workers, stays)) return fmt::format("the others continue; {}", restart);
  if (!is_member(worker)) return restart;
  return fmt::format(
      "it was the last worker, so the state in memory is lost; {}, and training continues from the last "
      "checkpoint",
      restart);
}

void report(DecisionContext& context, const Worker& worker, const Fault& fault, const std::vector<Loss>& losses) {
  const std::optional<int> rank = rank_of(context.state, worker.id);
  context.emit(EventKind::failed, worker,
               {{"rank", rank ? Json(*rank) : Json()},
                {"generation", context.state.current ? Json(context.state.current->number) : Json()},
                {"reason", fault.reason},
                {"last_lines", lines_json(fault.last_lines)}});
  const std::string rank_text = rank ? fmt::format(", rank {}", *rank) : "";
  context.say(fmt::format("{}{} failed: {}", name_of(worker), rank_text, fault.reason),
              consequence(context.state, worker, losses), Say::Kind::error);
}

void show_lines(DecisionContext& context, const Worker& worker, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  const std::size_t count = std::min(lines.size(), kShownLines);
  context.say(
      fmt::format("last lines of {}:\n  {}", name_of(worker), fmt::join(lines.end() - count, lines.end(), "\n  ")));
  auto& first = context.state.first_failure;
  if (first && first->worker == worker.id) first->lines_shown = true;
}

std::string how_it_ended(const WorkerExited& exited) {
  if (exited.started) return "it " + describe_end(exited.exit_code, exited.signal);
  return fmt::format("its process was not started: {}", fmt::join(exited.last_lines, "; "));
}

// Without a process there is no exit code that the job could pass on.
void note_exit(DecisionContext& context, const WorkerExited& exited) {
  auto& first = context.state.first_failure;
  if (!first || first->worker != exited.worker || !exited.started) return;
  first->exit_code = exited.exit_code;
  first->signal = exited.signal;
}

// The end of the process, with its last lines, may become known long after the failure.
void complete_failure(DecisionContext& context, const Worker& worker, const WorkerExited& exited) {
  note_exit(context, exited);
  auto& first = context.state.first_failure;
  if (first && first->worker == worker.id && !exited.last_lines.empty()) first->last_lines = exited.last_lines;
  context.emit(EventKind::exited, worker,
               {{"reason", how_it_ended(exited)}, {"last_lines", lines_json(exited.last_lines)}});
  show_lines(context, worker, exited.last_lines);
}

// Training is complete. The worker's last message may have gone to an earlier coordinator.
bool ends_with_the_job(const State& state, const WorkerExited& exited) {
  return state.ending && state.ending->exit_code == ExitCode::ok && exited.exit_code == 0 && exited.signal == 0;
}

struct Evicted {
  WorkerId id = 0;
  std::string host;
  bool was_usable = false, was_member = false;
  Record record = Record::none;
  Time worked{};  // until then
  std::string reason, why;
};

// Messages of the worker are ignored from here on.
Evicted evict(DecisionContext& context, const Loss& loss, const std::vector<Loss>& losses) {
  Worker& worker = context.state.workers.at(loss.worker);
  const Fault& fault = loss.fault;
  if (is_usable(worker)) {
    remember_first(context, worker, fault);
    report(context, worker, fault, losses);
    ++context.state.failures;
  }
  Evicted evicted{.id = worker.id,
                  .host = worker.host,
                  .was_usable = is_usable(worker),
                  .was_member = is_member(worker),
                  .record = worker.stepped ? Record::trained : Record::none,
                  .worked = std::min(worker.heard, fault.since.value_or(worker.heard)),
                  .reason = fault.reason,
                  .why = fmt::format("{} failed: {}", name_of(worker), fault.reason)};
  if (fault.process == ProcessState::running && !fault.exits) context.add(KillWorker{worker.id, fault.hung});
  if (fault.process == ProcessState::gone) show_lines(context, worker, fault.last_lines);  // else with its end
  context.enter_phase(worker, WorkerPhase::ending);
  return evicted;
}

// The generation that the worker is in, or was to be in, cannot continue.
void leave_generations(DecisionContext& context, const Evicted& gone) {
  State& state = context.state;
  auto& change = state.change;
  const bool was_coming = change && contains(change->members, gone.id);
  if (was_coming) abandon_change(context, gone.why);
  if (change) std::erase(change->leaving, gone.id);
  if (!gone.was_member && !(was_coming && change)) return;
  if (gone.was_member) std::erase(state.current->members, gone.id);
  if (!state.freezing) return begin_freeze(context, gone.why, gone.worked);
  recount_unfrozen(context);
}

bool is_training(const State& state) { return state.current && !state.freezing && state.current->stepped; }

// For Policy::failure_limit. The failures of one host are one, and what fails beside members that train is none: a host
// that cannot be used is tried again for as long as the job runs.
int limited_failures(DecisionContext& context, const std::vector<Loss>& losses) {
  std::set<std::string> hosts;
  for (const Loss& loss : losses) {
    const Worker* worker = context.find(loss.worker);
    if (worker == nullptr || !is_usable(*worker)) continue;
    if (is_member(*worker) || !is_training(context.state)) hosts.insert(worker->host);
  }
  return static_cast<int>(hosts.size());
}

// Every host has failed, and no process is on its way.
bool nothing_can_start(const State& state) {
  const auto usable = [](const auto& entry) { return is_usable(entry.second); };
  const auto failed = [&](const std::string& name) { return !state.hosts.at(name).last_failure.empty(); };
  return std::ranges::none_of(state.workers, usable) && std::ranges::all_of(state.order, failed);
}

void check_limits(DecisionContext& context) {
  const State& state = context.state;
  if (state.ending || !state.first_failure) return;
  const Failure& failure = *state.first_failure;
  const ExitCode code = failure.unreachable ? ExitCode::refused : ExitCode::failed;
  const std::string who =
      failure.worker == 0 ? failure.host : fmt::format("worker {} on {}", failure.worker, failure.host);
  const std::string first = fmt::format("{}: {}", who, failure.reason);
  if (!state.policy.elastic) return end_at_once(context, first, code);
  // A job that never made a step fails for a reason that waiting does not cure: data, options, memory.
  const bool never_trained =
      !state.trained_before && state.pace.steps_seen == 0 && state.furthest == TrainingPosition{};
  if (never_trained && nothing_can_start(state)) return end_at_once(context, first, code);
  if (state.failures_since_step > state.policy.failure_limit) {
    return begin_stop(context,
                      fmt::format("{} failures without a step between them; the first of the job was {}",
                                  state.failures_since_step, first),
                      code);
  }
}

// Marks every lost worker before the others hear of it, so that none of the lost is sent a Freeze.
std::vector<Evicted> evict_all(DecisionContext& context, const std::vector<Loss>& losses) {
  context.state.failures_since_step += limited_failures(context, losses);
  std::vector<Evicted> evicted;
  for (const Loss& loss : losses) {
    if (context.find(loss.worker) != nullptr) evicted.push_back(evict(context, loss, losses));
  }
  return evicted;
}

// Once for each host, however many of its workers failed.
void quarantine_hosts(DecisionContext& context, const std::vector<Evicted>& evicted) {
  std::map<std::string, Evicted> failed;
  for (const Evicted& each : evicted) {
    if (!each.was_usable) continue;
    const auto [known, is_new] = failed.emplace(each.host, each);
    if (!is_new) known->second.record = std::max(known->second.record, each.record);
  }
  for (const auto& [host, loss] : failed) quarantine(context, context.state.hosts.at(host), loss.reason, loss.record);
}

void forget_workers(DecisionContext& context, const std::vector<Evicted>& evicted, const std::vector<Loss>& losses) {
  for (const Evicted& each : evicted) leave_generations(context, each);
  for (const Loss& loss : losses) {
    if (loss.fault.process == ProcessState::gone) erase_worker(context, loss.worker);
  }
  context.settle = true;
}

// The agent never came up.
void fail_start(DecisionContext& context, const Host& host, const std::string& reason, bool unreachable) {
  context.say(fmt::format("{} could not be started: {}", host.line.name, reason), {}, Say::Kind::error);
  State& state = context.state;
  if (!state.first_failure) {
    state.first_failure = Failure{.host = host.line.name, .reason = reason, .unreachable = unreachable};
  }
  ++state.failures;
  if (!is_training(state)) ++state.failures_since_step;
}

}  // namespace

void lose_workers(DecisionContext& context, const std::vector<Loss>& losses) {
  const std::vector<Evicted> evicted = evict_all(context, losses);
  quarantine_hosts(context, evicted);
  forget_workers(context, evicted, losses);
  check_limits(context);
}

void lose_worker(DecisionContext& context, WorkerId id, const Fault& fault) { lose_workers(context, {{id, fault}}); }

void lose_host(DecisionContext& context, Host& host, const std::string& reason, bool is_fault_of_this_machine) {
  const AgentState agent = std::exchange(host.agent, AgentState::none);
  if (agent == AgentState::none) return;
  const bool asked = host.agent_ended = agent == AgentState::ending;
  const std::string why = fmt::format("its host's agent is gone: {}", reason);
  context.emit(EventKind::host_down,
               {{"host", host.line.name}, {"reason", asked ? "no worker is needed there" : reason}});
  std::vector<Loss> losses;
  for (const WorkerId id : host.slots) losses.push_back({id, {.reason = why, .process = ProcessState::gone}});
  const std::vector<Evicted> evicted = evict_all(context, losses);
  if (asked) {
    quarantine_hosts(context, evicted);
  } else {
    const bool trained = std::ranges::find(evicted, Record::trained, &Evicted::record) != evicted.end();
    quarantine(context, host, reason, trained ? Record::trained : Record::none);
  }
  forget_workers(context, evicted, losses);
  if (agent == AgentState::starting) fail_start(context, host, reason, !is_fault_of_this_machine);
  check_limits(context);
}

void fail_host(DecisionContext& context, Host& host, const std::string& reason) {
  quarantine(context, host, reason, Record::none);
  if (!context.state.first_failure) context.state.first_failure = Failure{.host = host.line.name, .reason = reason};
  context.settle = true;
  check_limits(context);
}

void worker_exited(DecisionContext& context, const WorkerExited& exited) {
  Worker* worker = context.find(exited.worker);
  if (worker == nullptr) return;
  if (is_usable(*worker) && ends_with_the_job(context.state, exited)) {
    context.enter_phase(*worker, WorkerPhase::leaving);
    recount_unfrozen(context);
  }
  if (is_usable(*worker)) {
    const Fault fault{.reason = how_it_ended(exited),
                      .process = ProcessState::gone,
                      .last_lines = exited.started ? exited.last_lines : std::vector<std::string>()};
    lose_worker(context, exited.worker, fault);
    return note_exit(context, exited);
  }
  if (worker->phase == WorkerPhase::ending) complete_failure(context, *worker, exited);
  erase_worker(context, exited.worker);
}

void erase_worker(DecisionContext& context, WorkerId id) {
  const Worker* worker = context.find(id);
  if (worker == nullptr) return;
  auto& slots = context.host_of(*worker).slots;
  std::ranges::replace(slots, id, WorkerId{0});
  for (auto* plan : {&context.state.current, &context.state.change}) {
    if (!*plan) continue;
    std::erase((*plan)->members, id);
    std::erase((*plan)->leaving, id);
  }
  context.state.workers.erase(id);
}

void begin_freeze(DecisionContext& context, const std::string& reason, std::optional<Time> cause) {
  State& state = context.state;
  abandon_change(context, reason);
  GenerationPlan& current = *state.current;
  const Generation number = state.change ? state.change->number : current.number;
  state.change.reset();
  state.freezing = Freezing{.number = number, .reason = reason, .since = context.now};
  Freezing& freezing = *state.freezing;
  freezing.times.cause = cause.value_or(context.now);
  freezing.times.noticed = context.now;
  const std::vector<WorkerId> unfrozen = unfrozen_members(state);
  freezing.awaited = unfrozen.size();
  context.emit(EventKind::freeze, {{"generation", number}, {"reason", reason}});
  context.send(unfrozen, Freeze{number});
  for (const WorkerId id : current.leaving) {
    if (Worker* worker = context.find(id)) dismiss(context, *worker, "removed from the job");
  }
  state.not_before = context.now;
  context.settle = true;
  ++state.fruitless;
  if (state.ending && all_frozen(state)) stop_frozen(context);
}

std::vector<WorkerId> unfrozen_members(const State& state) {
  std::vector<WorkerId> unfrozen;
  for (const WorkerId id : state.current->members) {
    const Worker& worker = state.workers.at(id);
    if (is_member(worker) && worker.frozen < state.freezing->number) unfrozen.push_back(id);
  }
  return unfrozen;
}

void recount_unfrozen(DecisionContext& context) {
  State& state = context.state;
  if (!state.freezing) return;
  state.freezing->awaited = unfrozen_members(state).size();
  if (state.ending && all_frozen(state)) stop_frozen(context);
}

void on_frozen(DecisionContext& context, Worker& worker, Generation number, const TrainingPosition& position) {
  const auto& current = context.state.current;
  const bool stale = !current || (number < current->number && worker.entered == current->number);
  if (!is_member(worker) || stale) return;
  worker.position = position;
  auto& freezing = context.state.freezing;
  const bool was_awaited = freezing && worker.frozen < freezing->number;
  worker.frozen = std::max(worker.frozen, number);
  if (!was_awaited || worker.frozen < freezing->number) return;
  if (--freezing->awaited > 0) return;
  context.settle = true;
  if (context.state.ending) stop_frozen(context);
}

}  // namespace dtrain::elastic
