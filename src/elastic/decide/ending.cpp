// The stages of the end of a job: workers are asked to stop, then killed; then the agents end; then the job is
// finished.
#include <algorithm>
#include <utility>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

// A coordinator that takes over ends the job in the same way (pending_requests.hpp).
void emit_ending(DecisionContext& context, EventKind kind, const Ending& ending) {
  context.emit(kind,
               {{"exit_code", static_cast<int>(ending.exit_code)}, {"reason", ending.reason}, {"save", ending.save}});
}

void enter_stage(DecisionContext& context, Ending::Stage stage) {
  context.state.ending->stage = stage;
  context.state.ending->since = context.now;
}

void dismiss_others(DecisionContext& context, const std::string& reason) {
  for (const WorkerId id : context.worker_ids()) {
    Worker& worker = context.state.workers.at(id);
    if (!is_member(worker) && is_usable(worker)) dismiss(context, worker, reason);
  }
}

void kill_all(DecisionContext& context) {
  for (auto& [id, worker] : context.state.workers) {
    if (worker.phase == WorkerPhase::ending) continue;
    context.add(KillWorker{id, false});
    context.enter_phase(worker, WorkerPhase::ending);
  }
}

void end_agents(DecisionContext& context) {
  for (auto& [name, host] : context.state.hosts) {
    if (host.agent == AgentState::none || host.agent == AgentState::ending) continue;
    host.agent = AgentState::ending;
    host.agent_since = context.now;
    context.add(EndHost{name});
  }
}

// Stop without a checkpoint, once to each.
void stop_without_saving(DecisionContext& context, std::vector<WorkerId> workers) {
  std::erase_if(workers, [&](WorkerId id) { return std::exchange(context.state.workers.at(id).sent_stop, true); });
  context.send(std::move(workers), Stop{.save = false, .reason = context.state.ending->reason});
}

std::vector<WorkerId> members_left(DecisionContext& context) {
  std::vector<WorkerId> members = context.state.current->members;
  std::erase_if(members, [&](WorkerId id) { return !is_member(context.state.workers.at(id)); });
  return members;
}

bool any_agent(const State& state) {
  return std::ranges::any_of(state.hosts, [](const auto& entry) { return entry.second.agent != AgentState::none; });
}

bool is_overdue(DecisionContext& context) {
  const Ending& ending = *context.state.ending;
  const Policy& policy = context.state.policy;
  const bool asked = ending.stage == Ending::Stage::asked;
  return context.passed(ending.since, asked ? policy.stop_timeout : policy.kill_timeout);
}

}  // namespace

void begin_stop(DecisionContext& context, const std::string& reason, ExitCode exit_code, bool save) {
  State& state = context.state;
  if (state.ending) return;
  // An earlier coordinator may have begun this stop. Its members would have left by themselves instead of holding.
  const bool may_be_asked = state.freezing && state.freezing->at_takeover && !all_frozen(state);
  state.ending = Ending{
      .since = context.now, .exit_code = exit_code, .reason = reason, .save = save, .asked_members = may_be_asked};
  emit_ending(context, EventKind::stop, *state.ending);
  abandon_change(context, "the job stops");
  dismiss_others(context, "the job stops");
  context.settle = true;
  if (all_frozen(state)) return stop_frozen(context);
  if (!state.current || state.freezing) return;
  state.ending->asked_members = true;
  // Each worker saves its state if the workers lose each other before they stop together.
  context.send(members_left(context), Stop{.save = save && !state.cut_off, .reason = reason});
}

// The members hold: the most advanced one writes the checkpoint. The others keep their state until it is written,
// because one of them takes over when the first is lost. After an earlier Stop each would save by itself, so they are
// told not to.
void stop_frozen(DecisionContext& context) {
  State& state = context.state;
  Ending& ending = *state.ending;
  std::vector<WorkerId> members = members_left(context);
  if (members.empty()) return;
  if (ending.exit_code == ExitCode::ok) {
    for (const WorkerId id : members) dismiss(context, state.workers.at(id), ending.reason);
    return;
  }
  const auto position = [&](WorkerId id) { return state.workers.at(id).position; };
  const WorkerId best = std::ranges::max(members, {}, position);
  const bool may_save = ending.save && !ending.saved && !state.cut_off;
  if (!may_save || !position(best).has_state) return stop_without_saving(context, members);
  if (std::exchange(ending.saver, best) != best) context.send(best, Stop{.save = true, .reason = ending.reason});
  if (!ending.asked_members) return;
  std::erase(members, best);
  stop_without_saving(context, std::move(members));
}

void end_at_once(DecisionContext& context, const std::string& reason, ExitCode exit_code) {
  State& state = context.state;
  context.settle = true;
  if (state.ending && state.ending->stage != Ending::Stage::asked) return;
  abandon_change(context, "the job ends");
  state.ending = Ending{.exit_code = exit_code, .reason = reason, .save = false};
  emit_ending(context, EventKind::end_at_once, *state.ending);
  enter_stage(context, Ending::Stage::killed);
  kill_all(context);
}

// Training is complete on all ranks: a rank is done after the collective in which rank 0 said that the last checkpoint
// is written.
void on_done(DecisionContext& context, Worker& worker, const TrainingPosition& position) {
  State& state = context.state;
  if (!is_member(worker)) return;
  // A short job may end before a heartbeat reports a step.
  if (worker.position < position) {
    worker.position = position;
    on_step(context, worker);
  }
  context.emit(EventKind::done, worker);
  context.enter_phase(worker, WorkerPhase::leaving);
  worker.left = Left{.how = Left::How::done, .reason = {}, .position = worker.position};
  const std::string reason = kTrainingIsComplete;
  if (!state.ending) {
    abandon_change(context, reason);
    dismiss_others(context, reason);
    state.ending.emplace().since = context.now;
  }
  state.ending->exit_code = ExitCode::ok;
  state.ending->reason = reason;
  recount_unfrozen(context);
}

void continue_ending(DecisionContext& context) {
  State& state = context.state;
  if (!state.ending) return;
  Ending& ending = *state.ending;
  if (ending.stage == Ending::Stage::asked && is_overdue(context)) {
    kill_all(context);
    enter_stage(context, Ending::Stage::killed);
  }
  const bool running = ending.stage == Ending::Stage::asked || ending.stage == Ending::Stage::killed;
  if (running && (state.workers.empty() || (ending.stage == Ending::Stage::killed && is_overdue(context)))) {
    end_agents(context);
    enter_stage(context, Ending::Stage::agents);
  }
  if (ending.stage == Ending::Stage::agents && (!any_agent(state) || is_overdue(context))) {
    enter_stage(context, Ending::Stage::finished);
    context.add(Finish{ending.exit_code, ending.reason});
  }
}

}  // namespace dtrain::elastic
