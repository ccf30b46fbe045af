#include <dtrain/elastic/decide.hpp>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

struct Receive {
  Turn& turn;

  void operator()(const HostsWanted& event) const { accept_hosts(turn, event); }
  void operator()(const HostUp& event) const { host_up(turn, event); }
  void operator()(const HostDown& event) const { host_down(turn, event); }
  void operator()(const GateTried& event) const { gate_tried(turn, event); }
  void operator()(const HostKnows& event) const { host_knows(turn, event); }
  void operator()(const ClaimAnswered& event) const { claim_answered(turn, event); }
  void operator()(const HostNotice& event) const { take_notice(turn, event); }
  void operator()(const WorkerSays& event) const { worker_says(turn, event); }
  void operator()(const WorkerExited& event) const { worker_exited(turn, event); }
  void operator()(const Drain& event) const { drain_host(turn, event.host, event.reason); }
  void operator()(const StopAsked& event) const {
    if (event.at_once) {
      end_at_once(turn, event.reason, ExitCode::resumable);
    } else {
      begin_stop(turn, event.reason, ExitCode::resumable);
    }
  }
  void operator()(const Tick&) const { watch(turn); }
};

}  // namespace

Decision decide(State state, const Event& event, Time now) {
  Decision decision{std::move(state), {}};
  Turn turn{decision.state, decision.actions, now, !std::holds_alternative<WorkerSays>(event)};
  if (decision.state.ending && decision.state.ending->stage == Ending::Stage::finished) return decision;
  std::visit(Receive{turn}, event);
  if (turn.settle) {
    settle_hosts(turn);
    consider_change(turn);
    continue_ending(turn);
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
