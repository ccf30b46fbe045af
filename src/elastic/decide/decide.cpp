#include "decide.hpp"

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

struct Receive {
  DecisionContext& context;

  void operator()(const HostsWanted& event) const { accept_hosts(context, event); }
  void operator()(const HostUp& event) const { host_up(context, event); }
  void operator()(const HostDown& event) const { host_down(context, event); }
  void operator()(const AdmissionChecked& event) const { admission_checked(context, event); }
  void operator()(const HostKnows& event) const { host_knows(context, event); }
  void operator()(const TiebreakerAnswered& event) const { tiebreaker_answered(context, event); }
  void operator()(const HostNotice& event) const { take_notice(context, event); }
  void operator()(const WorkerSays& event) const { worker_says(context, event); }
  void operator()(const WorkerExited& event) const { worker_exited(context, event); }
  void operator()(const Drain& event) const { drain_host(context, event.host, event.reason); }
  void operator()(const Undrain& event) const { end_drains(context, event.hosts); }
  void operator()(const StopAsked& event) const {
    if (event.at_once) {
      end_at_once(context, event.reason, event.exit_code);
    } else {
      begin_stop(context, event.reason, event.exit_code, event.save);
    }
  }
  void operator()(const Tick&) const { watch(context); }
};

}  // namespace

Decision decide(State state, const Event& event, Time now) {
  Decision decision{std::move(state), {}};
  DecisionContext context{decision.state, decision.actions, now, !std::holds_alternative<WorkerSays>(event)};
  if (decision.state.ending && decision.state.ending->stage == Ending::Stage::finished) return decision;
  std::visit(Receive{context}, event);
  if (context.settle) {
    settle_hosts(context);
    consider_change(context);
    continue_ending(context);
  }
  return decision;
}

State initial_state(const Policy& policy, const Origin& origin, Time now) {
  State state;
  state.policy = policy;
  state.next_generation = origin.next_generation;
  state.next_worker = state.reserved_workers = origin.next_worker;
  state.begun = state.heard_floor = now;
  for (const std::string& name : origin.logged) {
    state.hosts[name].line.name = name;
    state.hosts[name].logged = true;
  }
  return state;
}

}  // namespace dtrain::elastic
