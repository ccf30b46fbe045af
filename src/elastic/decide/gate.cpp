// The gate before a host's first worker. A host that does not pass is quarantined and tries again: nobody waits for it.
#include <fmt/format.h>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

// Of the start are the hosts of the first list.
bool is_newcomer(const Host& host) { return host.edit > 1; }

bool must_pass(const State& state, const Host& host) {
  return state.policy.gate == GateFor::everybody || (state.policy.gate == GateFor::newcomers && is_newcomer(host));
}

const char* text_of(GateResult::Prepare prepare) {
  switch (prepare) {
    case GateResult::Prepare::ran:
      return "ran";
    case GateResult::Prepare::earlier:
      return "earlier";
    case GateResult::Prepare::by_hand:
      return "by hand";
    case GateResult::Prepare::none:
      break;
  }
  return "none";
}

void fail(Turn& turn, Host& host, const GateResult& result) {
  const std::string& name = host.line.name;
  const std::string& last = result.last_lines.empty() ? result.failure : result.last_lines.back();
  const bool tells_more = !result.last_lines.empty() && result.failure.find(last) == result.failure.npos;
  const std::string reason = tells_more ? fmt::format("{}: {}", result.failure, last) : result.failure;
  turn.emit(
      "failed",
      {{"host", name}, {"stage", result.stage}, {"reason", reason}, {"last_lines", lines_json(result.last_lines)}});
  turn.say(fmt::format("{} may not join: {}", name, reason), "the job goes on without it; it is tried again by itself",
           Say::Kind::error);
  fail_host(turn, host, reason);
  host.next_command = fmt::format("dtrain tail-logs --host {} --no-follow", name);
}

void pass(Turn& turn, Host& host, const GateResult& result) {
  host.gate = Gate::open;
  turn.emit("prepared", {{"host", host.line.name},
                         {"prepare", text_of(result.prepare)},
                         {"health", result.health},
                         {"seconds", Json::object({{"prepare", result.prepare_seconds},
                                                   {"check", result.check_seconds},
                                                   {"all", seconds_between(host.gate_since, turn.now)}})}});
  if (result.prepare == GateResult::Prepare::by_hand) {
    turn.say(fmt::format("{} was prepared by hand: the prepare command does not run there", host.line.name));
  }
  if (!result.note.empty()) turn.say(fmt::format("{}: {}", host.line.name, result.note), {}, Say::Kind::warning);
}

}  // namespace

bool pass_gate(Turn& turn, Host& host) {
  if (host.gate == Gate::open || !must_pass(turn.state, host)) return true;
  if (host.gate == Gate::trying) return false;
  host.gate = Gate::trying;
  host.gate_since = turn.now;
  turn.emit("preparing", {{"host", host.line.name}});
  turn.add(TryGate{host.line.name});
  return false;
}

void gate_tried(Turn& turn, const GateTried& tried) {
  const auto found = turn.state.hosts.find(tried.host);
  if (found == turn.state.hosts.end() || found->second.gate != Gate::trying) return;
  Host& host = found->second;
  host.gate = Gate::closed;
  if (host.agent != AgentState::up) return;
  tried.result.failure.empty() ? pass(turn, host, tried.result) : fail(turn, host, tried.result);
}

void watch_gates(Turn& turn) {
  for (auto& [name, host] : turn.state.hosts) {
    if (host.gate != Gate::trying || host.agent != AgentState::up) continue;
    if (!turn.passed(host.gate_since, turn.state.policy.gate_timeout)) continue;
    turn.add(EndHost{name});
    lose_host(turn, host, "it was prepared, but never said how that ended");
  }
}

}  // namespace dtrain::elastic
