// The state as the user sees it.
#include <fmt/format.h>

#include <algorithm>

#include "decision_context.hpp"

namespace dtrain::elastic {
namespace {

// The most advanced phase of this host's workers.
std::optional<WorkerPhase> best_worker(const State& state, const Host& host) {
  std::optional<WorkerPhase> best;
  for (const WorkerId id : host.slots) {
    const auto found = state.workers.find(id);
    if (found == state.workers.end() || !is_usable(found->second)) continue;
    best = std::max(best.value_or(WorkerPhase::starting), found->second.phase);
  }
  return best;
}

std::string seconds_text(Time::duration duration) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

Time since_of(const State& state, const Host& host) {
  Time since = std::max(host.agent_since, host.admission_since);
  for (const WorkerId id : host.slots) {
    if (const auto found = state.workers.find(id); found != state.workers.end()) since = found->second.since;
  }
  return since;
}

}  // namespace

HostPhase phase_of(const State& state, const Host& host, Time now) {
  const std::optional<WorkerPhase> best = best_worker(state, host);
  const bool goes = !host.wanted || host.drained;
  if (goes && (best || host.agent == AgentState::up)) return HostPhase::leaving;
  if (best == WorkerPhase::member) return HostPhase::member;
  if (best == WorkerPhase::ready) return HostPhase::ready;
  if (best == WorkerPhase::preparing) return HostPhase::preparing;
  if (host.drained) return HostPhase::drained;
  if (!host.wanted) return HostPhase::absent;
  if (host.quarantined_until > now) return HostPhase::quarantined;
  if (host.admission == AdmissionState::checking && host.agent == AgentState::up) return HostPhase::preparing;
  if (best == WorkerPhase::starting || host.agent == AgentState::starting || host.agent == AgentState::up) {
    return HostPhase::starting;
  }
  if (host.allotted == 0 && state.edits > 0) return HostPhase::spare;
  return host.last_failure.empty() ? HostPhase::absent : HostPhase::failed;
}

Explanation explain(const State& state, const Host& host, Time now) {
  const std::string& name = host.line.name;
  const std::string since = fmt::format("since {}", seconds_text(now - since_of(state, host)));
  const std::string next = host.next_command.empty() ? fmt::format("dtrain hosts remove {}", name) : host.next_command;
  switch (phase_of(state, host, now)) {
    case HostPhase::member:
      return {state.freezing && !state.ending ? "keeps its state in memory while the job waits" : "", {}};
    case HostPhase::starting:
      return {fmt::format("its agent or process is being started, {}", since), {}};
    case HostPhase::preparing:
      if (host.admission == AdmissionState::checking)
        return {fmt::format("is being prepared and checked, {}", since), {}};
      return {fmt::format("builds its model, {}", since), {}};
    case HostPhase::ready:
      return {"is ready, and joins with the next change", {}};
    case HostPhase::leaving:
      return {host.drained ? fmt::format("is leaving: {}", host.drain_reason) : "is leaving", {}};
    case HostPhase::drained:
      return {fmt::format("drained: {}", host.drain_reason),
              fmt::format("dtrain hosts {} {}", host.noticed ? "remove" : "add", name)};
    case HostPhase::quarantined:
      return {
          fmt::format("failed ({}), tried again in {}", host.last_failure, seconds_text(host.quarantined_until - now)),
          next, host.forget_key};
    case HostPhase::failed:
      return {fmt::format("failed: {}", host.last_failure), next, host.forget_key};
    case HostPhase::spare:
      return {"the job has its maximum number of workers", kToUseSpare};
    case HostPhase::absent:
      return {};
  }
  return {};
}

std::optional<int> rank_of(const State& state, WorkerId worker) {
  if (!state.current || !contains(state.current->members, worker)) return std::nullopt;
  return state.workers.at(worker).rank;
}

}  // namespace dtrain::elastic
