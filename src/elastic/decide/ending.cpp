// How the job ends: politely, then by force, then the agents go, then it is finished.
#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

void enter_stage(Turn& turn, Ending::Stage stage) {
  turn.state.ending->stage = stage;
  turn.state.ending->since = turn.now;
}

void dismiss_others(Turn& turn, const std::string& reason) {
  for (const WorkerId id : turn.worker_ids()) {
    Worker& worker = turn.state.workers.at(id);
    if (!is_member(worker) && is_usable(worker)) dismiss(turn, worker, reason);
  }
}

void kill_all(Turn& turn) {
  for (auto& [id, worker] : turn.state.workers) {
    if (worker.phase == WorkerPhase::ending) continue;
    turn.add(KillWorker{id, false});
    turn.enter_phase(worker, WorkerPhase::ending);
  }
}

void end_agents(Turn& turn) {
  for (auto& [name, host] : turn.state.hosts) {
    if (host.agent == AgentState::none || host.agent == AgentState::ending) continue;
    host.agent = AgentState::ending;
    host.agent_since = turn.now;
    turn.add(EndHost{name});
  }
}

std::vector<WorkerId> members_left(Turn& turn) {
  std::vector<WorkerId> members = turn.state.current->members;
  std::erase_if(members, [&](WorkerId id) { return !is_member(turn.state.workers.at(id)); });
  return members;
}

bool any_agent(const State& state) {
  return std::ranges::any_of(state.hosts, [](const auto& entry) { return entry.second.agent != AgentState::none; });
}

bool is_overdue(Turn& turn) {
  const Ending& ending = *turn.state.ending;
  const Policy& policy = turn.state.policy;
  const bool asked = ending.stage == Ending::Stage::asked;
  return turn.passed(ending.since, asked ? policy.stop_timeout : policy.kill_timeout);
}

}  // namespace

void begin_stop(Turn& turn, const std::string& reason, ExitCode exit_code) {
  State& state = turn.state;
  if (state.ending) return;
  state.ending = Ending{.since = turn.now, .exit_code = exit_code, .reason = reason};
  turn.emit("stop", {{"reason", reason}});
  abandon_change(turn, "the job stops");
  dismiss_others(turn, "the job stops");
  turn.settle = true;
  if (all_frozen(state)) return stop_frozen(turn);
  // Should they lose each other before they stop together, each of them saves what it has.
  if (state.current && !state.freezing) turn.send(members_left(turn), Stop{.save = !state.cut_off, .reason = reason});
}

// They hold: one of them writes the checkpoint, the one that is furthest.
void stop_frozen(Turn& turn) {
  const State& state = turn.state;
  const std::vector<WorkerId> members = members_left(turn);
  if (members.empty()) return;
  if (state.ending->exit_code == ExitCode::ok) return turn.send(members, Leave{state.ending->reason});
  const auto standing = [&](WorkerId id) { return state.workers.at(id).standing; };
  const WorkerId best = std::ranges::max(members, {}, standing);
  std::vector<WorkerId> others;
  std::ranges::copy_if(members, std::back_inserter(others), [&](WorkerId id) { return id != best; });
  turn.send(best, Stop{.save = standing(best).has_state && !state.cut_off, .reason = state.ending->reason});
  turn.send(others, Stop{.save = false, .reason = state.ending->reason});
}

void end_at_once(Turn& turn, const std::string& reason, ExitCode exit_code) {
  State& state = turn.state;
  turn.settle = true;
  if (state.ending && state.ending->stage != Ending::Stage::asked) return;
  turn.emit("end_at_once", {{"reason", reason}});
  abandon_change(turn, "the job ends");
  state.ending = Ending{.exit_code = exit_code, .reason = reason};
  enter_stage(turn, Ending::Stage::killed);
  kill_all(turn);
}

// Training is complete, for all: a rank is done after a gathering in which rank 0 said that the last checkpoint is
// written.
void on_done(Turn& turn, Worker& worker, const Standing& standing) {
  State& state = turn.state;
  if (!is_member(worker)) return;
  // A short job may be over before a heartbeat told of a step.
  if (worker.standing < standing) {
    worker.standing = standing;
    on_step(turn, worker);
  }
  turn.emit("done", worker);
  turn.enter_phase(worker, WorkerPhase::leaving);
  worker.left = Left{.how = Left::How::done, .reason = {}, .standing = worker.standing};
  const std::string reason = "training is complete";
  if (!state.ending) {
    abandon_change(turn, reason);
    dismiss_others(turn, reason);
    state.ending.emplace().since = turn.now;
  }
  state.ending->exit_code = ExitCode::ok;
  state.ending->reason = reason;
}

void continue_ending(Turn& turn) {
  State& state = turn.state;
  if (!state.ending) return;
  Ending& ending = *state.ending;
  if (ending.stage == Ending::Stage::asked && is_overdue(turn)) {
    kill_all(turn);
    enter_stage(turn, Ending::Stage::killed);
  }
  const bool running = ending.stage == Ending::Stage::asked || ending.stage == Ending::Stage::killed;
  if (running && (state.workers.empty() || (ending.stage == Ending::Stage::killed && is_overdue(turn)))) {
    end_agents(turn);
    enter_stage(turn, Ending::Stage::agents);
  }
  if (ending.stage == Ending::Stage::agents && (!any_agent(state) || is_overdue(turn))) {
    enter_stage(turn, Ending::Stage::finished);
    turn.emit("finish", {{"exit_code", static_cast<int>(ending.exit_code)}, {"reason", ending.reason}});
    turn.add(Finish{ending.exit_code, ending.reason});
  }
}

}  // namespace dtrain::elastic
