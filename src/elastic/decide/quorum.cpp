// Whether this coordinator may act: it needs a quorum of each voter set, as another coordinator would to replace it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr Duration kAskAgain{2'000};

template <typename Test>
Quorum quorum_where(const State& state, const VoterHosts& voters, const Test& test) {
  const auto counts = [&](const std::string& name) {
    const auto found = state.hosts.find(name);
    return found != state.hosts.end() && found->second.agent == AgentState::up && test(found->second);
  };
  return quorum_of(static_cast<std::size_t>(std::ranges::count_if(voters.hosts, counts)), voters.hosts.size());
}

// Voters whose agents do not answer.
struct AbsentVoters {
  std::set<std::string> lost;
  std::set<std::string> ended;  // as asked: their hosts were drained, removed, or not needed
};

AbsentVoters absent_voters(const State& state) {
  AbsentVoters absent;
  for (const VoterHosts& voters : state.voter_sets) {
    for (const std::string& name : voters.hosts) {
      const auto found = state.hosts.find(name);
      if (found == state.hosts.end()) {
        absent.ended.insert(name);  // forgotten once it was removed
      } else if (found->second.agent == AgentState::ending || found->second.agent_ended) {
        absent.ended.insert(name);
      } else if (found->second.agent != AgentState::up) {
        absent.lost.insert(name);
      }
    }
  }
  return absent;
}

// `share`: of the agents.
std::string words_about(const AbsentVoters& absent, std::string_view share) {
  if (absent.lost.empty())
    return fmt::format("{} of the agents were ended with their hosts: {}", share, fmt::join(absent.ended, ", "));
  std::string text = fmt::format("{} of the agents do not answer: {}", share, fmt::join(absent.lost, ", "));
  if (!absent.ended.empty())
    text += fmt::format("; the agents of {} were ended with their hosts", fmt::join(absent.ended, ", "));
  return text;
}

bool suffices(const VoterHosts& voters, Quorum quorum) {
  return quorum == Quorum::majority || (quorum == Quorum::half && voters.has_tiebreaker);
}

void request_tiebreaker(DecisionContext& context, VoterHosts& voters) {
  if (voters.asked != Time{} && context.now - voters.asked < kAskAgain) return;
  voters.asked = context.now;
  context.add(AcquireTiebreaker{voters.generation + 1});
}

void note_cut_off(DecisionContext& context, bool cut_off) {
  State& state = context.state;
  if (cut_off == state.cut_off.has_value()) return;
  if (!cut_off)
    return context.emit(EventKind::reached,
                        {{"seconds", seconds_between(std::exchange(state.cut_off, {}), context.now)}});
  state.cut_off = context.now;
  context.emit(EventKind::cut_off, {{"generation", state.voter_sets.front().generation}});
  const AbsentVoters absent = absent_voters(state);
  if (absent.lost.empty()) {
    return context.say(fmt::format("{}: the job waits for them", why_no_quorum(state)),
                       fmt::format("take them back: 'dtrain hosts add {}'", fmt::join(absent.ended, " ")),
                       Say::Kind::warning);
  }
  context.say(fmt::format("{}: the job waits for them, or continues on their side", why_no_quorum(state)),
              fmt::format("check the machines of {} and the network between them", fmt::join(absent.lost, ", ")),
              Say::Kind::warning);
}

// A coordinator that is cut off loses its agents one after the other, and holds half of them for a moment. The
// tie-breaker is held for ever, so during a change it is taken only for agents that have answered since the change was
// begun.
bool half_answers(const State& state, const VoterHosts& voters) {
  if (!state.change || state.change->committed) return true;
  const auto knows = [&](const Host& host) { return host.knows >= state.change->number; };
  return quorum_where(state, voters, knows) != Quorum::none;
}

}  // namespace

std::string why_no_quorum(const State& state) { return words_about(absent_voters(state), "half or more"); }

bool has_quorum(DecisionContext& context) {
  bool enough = true;
  for (VoterHosts& voters : context.state.voter_sets) {
    const Quorum quorum = quorum_where(context.state, voters, [](const Host&) { return true; });
    if (quorum == Quorum::half && !voters.has_tiebreaker && half_answers(context.state, voters)) {
      request_tiebreaker(context, voters);
    }
    enough &= suffices(voters, quorum);
  }
  note_cut_off(context, !enough);
  return enough;
}

bool change_is_known(const State& state) {
  const auto knows = [&](const Host& host) { return host.knows >= state.change->number; };
  return std::ranges::all_of(
      state.voter_sets, [&](const VoterHosts& voters) { return suffices(voters, quorum_where(state, voters, knows)); });
}

void announce_change(DecisionContext& context, Generation generation, bool committed,
                     const std::vector<Member>& members) {
  if (!context.state.policy.quorum) return;
  context.add(AnnounceVoters{generation, committed, members});
  if (!committed) return;
  VoterHosts voters{.generation = generation, .hosts = {}};
  for (const Member& member : members) {
    if (std::ranges::find(voters.hosts, member.host) == voters.hosts.end()) {
      voters.hosts.push_back(member.host);
    }
  }
  context.state.voter_sets = {std::move(voters)};
}

void host_knows(DecisionContext& context, const HostKnows& knows) {
  const auto found = context.state.hosts.find(knows.host);
  if (found == context.state.hosts.end()) return;
  found->second.knows = std::max(found->second.knows, knows.generation);
  commit_when_known(context);
}

void tiebreaker_answered(DecisionContext& context, const TiebreakerAnswered& answered) {
  for (VoterHosts& voters : context.state.voter_sets) {
    if (voters.generation + 1 != answered.generation || voters.has_tiebreaker == answered.won) continue;
    voters.has_tiebreaker = answered.won;
    context.emit(EventKind::claimed, {{"generation", answered.generation}});
    context.say(fmt::format("{}. This half holds the tie-breaker of generation {} and continues",
                            words_about(absent_voters(context.state), "half"), answered.generation),
                {}, Say::Kind::warning);
  }
}

bool leads(const State& state, const std::function<std::size_t(const std::vector<std::string>&)>& answered) {
  return std::ranges::all_of(state.voter_sets, [&](const VoterHosts& voters) {
    return suffices(voters, quorum_of(answered(voters.hosts), voters.hosts.size()));
  });
}

}  // namespace dtrain::elastic
