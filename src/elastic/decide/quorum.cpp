// Whether this coordinator may go on: it must have the share of each electorate that another one would need.
#include <fmt/format.h>

#include <algorithm>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr Duration kAskAgain{2'000};

template <typename Test>
Share share_where(const State& state, const Electorate& electorate, const Test& test) {
  const auto counts = [&](const std::string& name) {
    const auto found = state.hosts.find(name);
    return found != state.hosts.end() && found->second.agent == AgentState::up && test(found->second);
  };
  return share_of(static_cast<std::size_t>(std::ranges::count_if(electorate.hosts, counts)), electorate.hosts.size());
}

bool suffices(const Electorate& electorate, Share share) {
  return share == Share::majority || (share == Share::half && electorate.claimed);
}

void claim(Turn& turn, Electorate& electorate) {
  if (electorate.asked != Time{} && turn.now - electorate.asked < kAskAgain) return;
  electorate.asked = turn.now;
  turn.add(ClaimNext{electorate.generation + 1});
}

void note_cut_off(Turn& turn, bool cut_off) {
  State& state = turn.state;
  if (cut_off == state.cut_off.has_value()) return;
  if (!cut_off) return turn.emit("reached", {{"seconds", seconds_between(std::exchange(state.cut_off, {}), turn.now)}});
  state.cut_off = turn.now;
  turn.emit("cut_off", {{"generation", state.electorates.front().generation}});
  turn.say("half or more of the agents do not answer: the job waits for them, or goes on where they are",
           "see whether their machines and the network between them work", Say::Kind::warning);
}

}  // namespace

bool has_quorum(Turn& turn) {
  bool enough = true;
  for (Electorate& electorate : turn.state.electorates) {
    const Share share = share_where(turn.state, electorate, [](const Host&) { return true; });
    if (share == Share::half && !electorate.claimed) claim(turn, electorate);
    enough &= suffices(electorate, share);
  }
  note_cut_off(turn, !enough);
  return enough;
}

bool change_is_known(const State& state) {
  const auto knows = [&](const Host& host) { return host.knows >= state.change->number; };
  return std::ranges::all_of(state.electorates, [&](const Electorate& electorate) {
    return suffices(electorate, share_where(state, electorate, knows));
  });
}

void convene(Turn& turn, Generation generation, bool committed, const std::vector<Member>& members) {
  if (!turn.state.policy.quorum) return;
  turn.add(TellCircle{generation, committed, members});
  if (!committed) return;
  Electorate electorate{.generation = generation, .hosts = {}};
  for (const Member& member : members) {
    if (std::ranges::find(electorate.hosts, member.host) == electorate.hosts.end()) {
      electorate.hosts.push_back(member.host);
    }
  }
  turn.state.electorates = {std::move(electorate)};
}

void host_knows(Turn& turn, const HostKnows& knows) {
  const auto found = turn.state.hosts.find(knows.host);
  if (found == turn.state.hosts.end()) return;
  found->second.knows = std::max(found->second.knows, knows.generation);
  commit_when_known(turn);
}

void claim_answered(Turn& turn, const ClaimAnswered& answered) {
  for (Electorate& electorate : turn.state.electorates) {
    if (electorate.generation + 1 != answered.generation || electorate.claimed == answered.won) continue;
    electorate.claimed = answered.won;
    turn.emit("claimed", {{"generation", answered.generation}});
    turn.say(fmt::format("half of the agents do not answer; this half has claimed generation {} and goes on",
                         answered.generation),
             {}, Say::Kind::warning);
  }
}

bool leads(const State& state, const std::function<std::size_t(const std::vector<std::string>&)>& answered) {
  return std::ranges::all_of(state.electorates, [&](const Electorate& electorate) {
    return suffices(electorate, share_of(answered(electorate.hosts), electorate.hosts.size()));
  });
}

}  // namespace dtrain::elastic
