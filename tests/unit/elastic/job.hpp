// A job under test: feeds decide() and records its actions. Time passes only when a test says so.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/event_kind.hpp>

#include "decide/decide.hpp"

namespace dtrain::elastic {

using namespace std::chrono_literals;

inline HostLine host_line(const std::string& name, int slots = 1) {
  return {.name = name, .user = {}, .host = name, .port = 0, .slots = slots};
}

inline Policy elastic_policy() {
  Policy policy;
  policy.elastic = true;
  policy.boundary = Boundary::step;
  return policy;
}

inline WorkerExited exited(WorkerId worker, int exit_code = 0, int signal = 0) {
  return {.worker = worker, .exit_code = exit_code, .signal = signal, .last_lines = {}};
}
inline Left left(Left::How how) { return {.how = how, .reason = {}, .position = {}}; }

// What the records of a job in this state say to the next coordinator.
inline Origin recorded_origin(const State& state) {
  Origin origin{.next_generation = state.next_generation, .next_worker = state.reserved_workers, .logged = {}};
  origin.earlier.listed = state.order;
  origin.earlier.trained = state.trained_before || state.pace.steps_seen > 0;
  for (const auto& [name, host] : state.hosts) {
    if (!host.wanted) origin.earlier.unlisted.insert(name);
    if (host.logged) origin.logged.push_back(name);
  }
  return origin;
}

class Job {
 public:
  explicit Job(const Policy& policy = elastic_policy(), const Origin& origin = {})
      : state_(initial_state(policy, origin, now_)) {}

  // Returns the actions that this event alone caused.
  const std::vector<Action>& feed(const Event& event) {
    Decision decision = decide(std::move(state_), event, now_);
    state_ = std::move(decision.state);
    actions_ = std::move(decision.actions);
    all_.insert(all_.end(), actions_.begin(), actions_.end());
    return actions_;
  }

  // Time passes in steps, each with a heartbeat of every worker that is not `silent`, and a Tick.
  void pass(Duration time) {
    const Time end = now_ + time;
    while (now_ < end) {
      now_ += std::min<Time::duration>(100ms, end - now_);
      for (const auto& [id, worker] : state_.workers) heart_.push_back(id);
      for (const WorkerId id : std::exchange(heart_, {})) {
        const auto found = state_.workers.find(id);
        if (found == state_.workers.end() || found->second.phase == WorkerPhase::starting) continue;
        if (std::ranges::find(silent, id) == silent.end()) beat(id);
      }
      feed(Tick{});
    }
  }

  // The coordinator itself stands still.
  void stall(Duration time) { now_ += time; }

  void want(const std::vector<std::string>& names, bool by_person = false) {
    HostsWanted wanted{.hosts = {}, .by_person = by_person};
    for (const std::string& name : names) wanted.hosts.push_back(host_line(name));
    feed(wanted);
  }

  void say(WorkerId worker, const FromWorker& message) { feed(WorkerSays{worker, message}); }

  void beat(WorkerId id) {
    const Worker& worker = state_.workers.at(id);
    Progress progress = worker.progress;
    progress.generation = worker.entered;
    progress.position = worker.position;
    say(id, progress);
  }

  void beat(WorkerId id, Phase phase, double seconds) {
    Progress progress = state_.workers.at(id).progress;
    progress.generation = state_.workers.at(id).entered;
    progress.position = state_.workers.at(id).position;
    progress.phase = phase;
    progress.seconds_in_phase = seconds;
    say(id, progress);
  }

  // The worker of a host's first slot; 0 when there is none.
  WorkerId worker_on(const std::string& host) const {
    const auto found = state_.hosts.find(host);
    return found == state_.hosts.end() || found->second.slots.empty() ? 0 : found->second.slots[0];
  }

  // Each host is a machine of its own.
  void host_up(const std::string& host) {
    const std::size_t number = addresses_.try_emplace(host, addresses_.size() + 1).first->second;
    feed(HostUp{host, fmt::format("10.0.0.{}", number)});
  }
  void hello(const std::string& host) {
    const WorkerId id = worker_on(host);
    say(id, Hello{.pid = 1'000 + static_cast<std::int64_t>(id),
                  .data = {"10.0.0.1", static_cast<std::uint16_t>(5'000 + id)},
                  .fingerprint = "same"});
  }
  void ready(const std::string& host, const std::string& probe = "same") {
    say(worker_on(host), Ready{.position = {}, .probe = probe});
  }
  // From start to Ready.
  void prepare_host(const std::string& host) {
    if (state_.hosts.at(host).agent != AgentState::up) host_up(host);
    hello(host);
    ready(host);
  }

  // The agents that are up know a generation.
  void know(Generation generation) {
    std::vector<std::string> up;
    for (const auto& [name, host] : state_.hosts) {
      if (host.agent == AgentState::up && std::ranges::find(deaf, name) == deaf.end()) up.push_back(name);
    }
    for (const std::string& name : up) feed(HostKnows{name, generation});
  }
  // Another coordinator takes over with the reports of these hosts' agents. Without `origin` no event is known.
  const std::vector<Action>& take_over(const std::vector<std::string>& names, std::optional<Origin> origin = {}) {
    TakeoverState takeover;
    takeover.election = {.term = 2, .voter_sets = voter_sets(), .tiebreakers = {}, .granted_by = {}};
    for (const std::string& name : names) takeover.hosts.push_back(report_of(name));
    if (!origin) origin = Origin{state_.next_generation, state_.reserved_workers, {}};
    Decision decision = recover_state(state_.policy, *origin, takeover, now_);
    state_ = std::move(decision.state);
    actions_ = std::move(decision.actions);
    all_.insert(all_.end(), actions_.begin(), actions_.end());
    return actions_;
  }
  // The report of an agent.
  HostReport report_of(const std::string& name) const {
    HostReport report{.host = name, .address = "10.0.0.1", .voters = {}, .workers = {}};
    for (const WorkerId id : state_.hosts.at(name).slots) {
      const auto found = state_.workers.find(id);
      if (found == state_.workers.end()) continue;
      const Worker& worker = found->second;
      const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(now_ - worker.heard);
      WorkerReport& told =
          report.workers.emplace_back(WorkerReport{.worker = id, .slot = worker.slot, .silence = silence, .said = {}});
      if (worker.phase == WorkerPhase::starting) continue;
      told.said.emplace_back(Hello{worker.pid, worker.data, worker.fingerprint});
      if (worker.phase == WorkerPhase::preparing) continue;
      told.said.emplace_back(Ready{.position = {}, .probe = worker.probe});
      Progress progress = worker.progress;
      progress.generation = worker.entered;
      progress.position = worker.position;
      told.said.emplace_back(progress);
    }
    return report;
  }
  // The voter sets that were announced to the agents: of the newest committed generation, and of a newer one.
  std::vector<VoterSet> voter_sets() const {
    std::vector<VoterSet> known;
    for (const Action& action : all_) {
      const auto* told = std::get_if<AnnounceVoters>(&action);
      if (!told) continue;
      if (told->committed) known.clear();
      VoterSet voter_set{.generation = told->generation, .voters = {}, .members = told->members};
      for (const Member& member : told->members) voter_set.voters.push_back({member.host, "tree", {}});
      known.push_back(std::move(voter_set));
    }
    return known;
  }

  // All members of the change connect.
  void mesh() {
    ASSERT_TRUE(state_.change) << "nothing is being prepared";
    const GenerationPlan change = *state_.change;
    know(change.number);
    for (const WorkerId id : change.members) say(id, Meshed{change.number, {}});
  }
  void mesh_of(const std::vector<std::string>& hosts) {
    const Generation number = state_.change->number;
    for (const std::string& host : hosts) say(worker_on(host), Meshed{number, {}});
  }
  // The old members reach the boundary, and the new ones follow.
  void enter() {
    const GenerationPlan& next = state_.change ? *state_.change : *state_.current;
    const GenerationPlan plan = next;
    const TrainingPosition position{true, 0, step, step};
    for (const WorkerId id : plan.members) say(id, Entered{plan.number, position});
  }
  // Every member finishes one more step of the current generation.
  void train() {
    ++step;
    const GenerationPlan plan = *state_.current;
    for (const WorkerId id : plan.members) {
      say(id, Progress{.generation = plan.number,
                       .phase = Phase::computing,
                       .position = {true, 0, step, step},
                       .seconds_in_phase = 0,
                       .step_seconds = 0.1,
                       .compute_seconds = 0.08});
    }
  }
  // A change that was begun continues to its first step.
  void complete_change() {
    mesh();
    enter();
    train();
  }
  // Every frozen worker reports it.
  void freeze() {
    const Generation number = state_.freezing->number;
    const std::vector<WorkerId> members = state_.current->members;
    for (const WorkerId id : members) say(id, Frozen{number, state_.workers.at(id).position});
  }

  // A job that trains on these hosts.
  void run_on(const std::vector<std::string>& names) {
    want(names);
    for (const std::string& name : names) prepare_host(name);
    complete_change();
    std::erase_if(all_, [](const Action& action) { return !std::holds_alternative<AnnounceVoters>(action); });
  }

  const State& state() const { return state_; }
  const Worker& worker(const std::string& host) const { return state_.workers.at(worker_on(host)); }
  const std::vector<Action>& actions() const { return actions_; }
  std::vector<Action> take_all() { return std::exchange(all_, {}); }
  const std::vector<Action>& all() const { return all_; }
  Time now() const { return now_; }

  // Hosts of the current generation, by rank.
  std::vector<std::string> ranks() const {
    std::vector<std::string> names;
    if (!state_.current) return names;
    for (const WorkerId id : state_.current->members) names.push_back(state_.workers.at(id).host);
    return names;
  }

  std::vector<WorkerId> silent;
  std::vector<std::string> deaf;  // hosts whose agents miss announcements of voters
  std::uint64_t step = 0;

 private:
  Time now_ = Time{} + 1'000s;
  State state_;
  std::vector<Action> actions_, all_;
  std::map<std::string, std::size_t> addresses_;
  std::vector<WorkerId> heart_;
};

template <typename T>
std::vector<T> of_kind(const std::vector<Action>& actions) {
  std::vector<T> found;
  for (const Action& action : actions) {
    if (const T* kind = std::get_if<T>(&action)) found.push_back(*kind);
  }
  return found;
}

// Messages of one kind, with their receivers.
template <typename T>
std::vector<std::pair<WorkerId, T>> sent(const std::vector<Action>& actions) {
  std::vector<std::pair<WorkerId, T>> found;
  for (const Send& send : of_kind<Send>(actions)) {
    const T* message = std::get_if<T>(&send.message);
    for (const WorkerId to : send.to) {
      if (message != nullptr) found.emplace_back(to, *message);
    }
  }
  return found;
}

template <typename T>
std::vector<WorkerId> receivers(const std::vector<Action>& actions) {
  std::vector<WorkerId> workers;
  for (const auto& [worker, message] : sent<T>(actions)) workers.push_back(worker);
  return workers;
}

// "+w1 -w2": lines of host_worker_log, in order.
inline std::string logged(const std::vector<Action>& actions) {
  std::string text;
  for (const LogMembership& line : of_kind<LogMembership>(actions)) {
    text.append(text.empty() ? "" : " ").append(line.added ? "+" : "-").append(line.host);
  }
  return text;
}

inline std::vector<Json> events(const std::vector<Action>& actions, EventKind kind) {
  std::vector<Json> found;
  for (const Emit& emit : of_kind<Emit>(actions)) {
    if (event_kind(emit.event) == kind) found.push_back(emit.event);
  }
  return found;
}

inline std::vector<std::string> started(const std::vector<Action>& actions) {
  std::vector<std::string> hosts;
  for (const StartWorker& start : of_kind<StartWorker>(actions)) hosts.push_back(start.host);
  return hosts;
}

}  // namespace dtrain::elastic
