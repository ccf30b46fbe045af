#include "election_sim.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::elastic {
ElectionSim::ElectionSim(int count, int coordinator_at) {
  std::vector<int> all;
  for (int number = 1; number <= count; ++number) all.push_back(number);
  coordinators_[1] = {.place = coordinator_at};
  heal();
  for (const int number : all) {
    Election& agent = agents_[number];
    agent.self = voter(number);
    agent.heard = now_;
    feed(number, Followed{leader_of(1)});
    feed(number, VoterNotice{true, voter_set_of(1, all)});
  }
  sees_folder_.insert(all.begin(), all.end());
}

void ElectionSim::cut(const std::vector<std::set<int>>& groups, const std::set<int>& folder) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const int number : groups[group]) group_[number] = static_cast<int>(group);
  }
  sees_folder_ = folder;
}

void ElectionSim::heal() {
  group_.clear();
  for (const auto& [number, agent] : agents_) sees_folder_.insert(number);
}

void ElectionSim::kill_machine(int number) {
  dead_.insert(number);
  for (auto& [term, coordinator] : coordinators_) {
    if (coordinator.place == number) coordinator.alive = false;
  }
}

void ElectionSim::prepare(Generation generation, const std::vector<int>& members, const std::vector<int>& told) {
  for (const int number : told) feed(number, VoterNotice{false, voter_set_of(generation, members)});
}

void ElectionSim::pass(std::chrono::milliseconds time) {
  for (; time > 0ms; time -= 100ms) {
    now_ += 100ms;
    for (auto& [number, agent] : agents_) {
      if (dead_.contains(number) || gave_up.contains(number)) continue;
      if (agent.connected) {
        const Coordinator* leader = reachable(number, *agent.leader);
        if (leader) feed(number, LeaderHeard{});
        if (!leader && !coordinators_.at(agent.leader->term).alive) feed(number, LeaderGone{});
      }
      feed(number, Tick{});
    }
  }
}

std::map<Term, int> ElectionSim::coordinators() const {
  std::map<Term, int> alive;
  for (const auto& [term, coordinator] : coordinators_) {
    if (coordinator.alive) alive[term] = coordinator.place;
  }
  return alive;
}

std::set<int> ElectionSim::followers(Term term) const {
  std::set<int> found;
  for (const auto& [number, agent] : agents_) {
    if (!dead_.contains(number) && agent.connected && agent.leader->term == term) found.insert(number);
  }
  return found;
}

bool ElectionSim::reach(int from, int to) const {
  const auto group = [&](int number) { return group_.contains(number) ? group_.at(number) : 0; };
  return !dead_.contains(from) && !dead_.contains(to) && group(from) == group(to);
}

Leader ElectionSim::leader_of(Term term) const {
  const int place = coordinators_.at(term).place;
  const std::string address = place == kElsewhere ? "10.0.1.1" : voter(place).address.address;
  return {.term = term, .address = {address, static_cast<std::uint16_t>(term)}};
}

const ElectionSim::Coordinator* ElectionSim::reachable(int from, const Leader& leader) const {
  const Coordinator& coordinator = coordinators_.at(leader.term);
  return coordinator.alive && reach(from, coordinator.place) ? &coordinator : nullptr;
}

void ElectionSim::feed(int number, const ElectEvent& event) {
  ElectDecision decision = elect(std::move(agents_.at(number)), event, now_);
  agents_.at(number) = std::move(decision.state);
  for (const ElectAction& action : decision.actions) {
    std::visit([&](const auto& kind) { act(number, kind); }, action);
  }
}

void ElectionSim::act(int number, const Dial& dial) {
  if (reachable(number, dial.leader)) {
    feed(number, Followed{dial.leader});
  } else {
    feed(number, DialFailed{});
  }
}

void ElectionSim::act(int number, const LookAround&) {
  if (sees_folder_.contains(number)) feed(number, LeaderFound{leader_of(coordinators_.rbegin()->first)});
}

void ElectionSim::act(int number, const RequestVotes& ask) {
  for (const auto& [other, agent] : agents_) {
    const auto is_asked = [&, &self = agent.self](const Voter& whom) { return whom.is(self); };
    if (std::ranges::none_of(ask.whom, is_asked)) continue;
    Vote vote;
    vote.voter = agent.self;
    if (reach(number, other)) {
      feed(other, VoteRequest{ask.term, ask.pre_vote});
      vote = answers_.at(other);
    }
    feed(number, VoteReceived{ask.term, ask.pre_vote, vote});
  }
}

// A coordinator that hears of a higher term steps down.
void ElectionSim::act(int number, const HangUp& hang_up) {
  for (auto& [term, coordinator] : coordinators_) {
    if (term < hang_up.term && reach(number, coordinator.place)) coordinator.alive = false;
  }
}

void ElectionSim::act(int number, const AcquireTiebreaker& tiebreaker) {
  if (!sees_folder_.contains(number)) return;
  const bool won = tiebreakers_.try_emplace(tiebreaker.generation, number).first->second == number;
  feed(number, TiebreakerAnswered{tiebreaker.generation, won});
}

void ElectionSim::act(int number, const StartCoordinator& start) {
  const Term term = start.election.term;
  EXPECT_TRUE(elected.insert(term).second) << "two coordinators of term " << term;
  if (unfit.contains(number)) return feed(number, CoordinatorFailed{});
  coordinators_[term] = {.place = number, .alive = true};
  feed(number, CoordinatorRuns{leader_of(term)});
}

void ElectionSim::act(int number, const Announce& announce) {
  for (const auto& [other, agent] : agents_) {
    const auto is_told = [&, &self = agent.self](const Voter& whom) { return whom.is(self); };
    if (std::ranges::any_of(announce.whom, is_told) && reach(number, other)) {
      feed(other, LeaderFound{announce.leader});
    }
  }
}

}  // namespace dtrain::elastic
