#include "village.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::elastic {
namespace {

Leader leader_of(Term term) { return {.term = term, .address = {"10.0.1.1", static_cast<std::uint16_t>(term)}}; }

}  // namespace

Village::Village(int count, int coordinator_at) {
  std::vector<int> all;
  for (int number = 1; number <= count; ++number) all.push_back(number);
  coordinators_[1] = {.place = coordinator_at};
  heal();
  for (const int number : all) {
    Election& agent = agents_[number];
    agent.self = elector(number);
    agent.heard = now_;
    feed(number, Followed{leader_of(1)});
    feed(number, CircleNotice{true, circle_of(1, all)});
  }
  sees_folder_.insert(all.begin(), all.end());
}

void Village::cut(const std::vector<std::set<int>>& groups, const std::set<int>& folder) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const int number : groups[group]) group_[number] = static_cast<int>(group);
  }
  sees_folder_ = folder;
}

void Village::heal() {
  group_.clear();
  for (const auto& [number, agent] : agents_) sees_folder_.insert(number);
}

void Village::kill_machine(int number) {
  dead_.insert(number);
  for (auto& [term, coordinator] : coordinators_) {
    if (coordinator.place == number) coordinator.alive = false;
  }
}

void Village::prepare(Generation generation, const std::vector<int>& members, const std::vector<int>& told) {
  for (const int number : told) feed(number, CircleNotice{false, circle_of(generation, members)});
}

void Village::pass(std::chrono::milliseconds time) {
  for (; time > 0ms; time -= 100ms) {
    now_ += 100ms;
    for (auto& [number, agent] : agents_) {
      if (dead_.contains(number) || despaired.contains(number)) continue;
      if (agent.connected) {
        const Coordinator* leader = reachable(number, *agent.leader);
        if (leader) feed(number, LeaderHeard{});
        if (!leader && !coordinators_.at(agent.leader->term).alive) feed(number, LeaderGone{});
      }
      feed(number, Tick{});
    }
  }
}

std::map<Term, int> Village::coordinators() const {
  std::map<Term, int> alive;
  for (const auto& [term, coordinator] : coordinators_) {
    if (coordinator.alive) alive[term] = coordinator.place;
  }
  return alive;
}

std::set<int> Village::followers(Term term) const {
  std::set<int> found;
  for (const auto& [number, agent] : agents_) {
    if (!dead_.contains(number) && agent.connected && agent.leader->term == term) found.insert(number);
  }
  return found;
}

bool Village::reach(int from, int to) const {
  const auto group = [&](int number) { return group_.contains(number) ? group_.at(number) : 0; };
  return !dead_.contains(from) && !dead_.contains(to) && group(from) == group(to);
}

const Village::Coordinator* Village::reachable(int from, const Leader& leader) const {
  const Coordinator& coordinator = coordinators_.at(leader.term);
  return coordinator.alive && reach(from, coordinator.place) ? &coordinator : nullptr;
}

void Village::feed(int number, const ElectEvent& event) {
  ElectDecision decision = elect(std::move(agents_.at(number)), event, now_);
  agents_.at(number) = std::move(decision.state);
  for (const ElectAction& action : decision.actions) {
    std::visit([&](const auto& kind) { act(number, kind); }, action);
  }
}

void Village::act(int number, const Dial& dial) {
  if (reachable(number, dial.leader)) {
    feed(number, Followed{dial.leader});
  } else {
    feed(number, DialFailed{});
  }
}

void Village::act(int number, const LookAround&) {
  if (sees_folder_.contains(number)) feed(number, LeaderFound{leader_of(coordinators_.rbegin()->first)});
}

void Village::act(int number, const AskPromises& ask) {
  for (const auto& [other, agent] : agents_) {
    const auto is_asked = [&, &self = agent.self](const CircleAgent& whom) { return whom.is(self); };
    if (std::ranges::none_of(ask.whom, is_asked)) continue;
    Vote vote;
    vote.voter = agent.self;
    if (reach(number, other)) {
      feed(other, PromiseAsked{ask.term, ask.trial});
      vote = answers_.at(other);
    }
    feed(number, VoteCame{ask.term, ask.trial, vote});
  }
}

// Whoever coordinates and hears of a higher term steps down.
void Village::act(int number, const HangUp& hang_up) {
  for (auto& [term, coordinator] : coordinators_) {
    if (term < hang_up.term && reach(number, coordinator.place)) coordinator.alive = false;
  }
}

void Village::act(int number, const ClaimNext& claim) {
  if (!sees_folder_.contains(number)) return;
  const bool won = claims_.try_emplace(claim.generation, number).first->second == number;
  feed(number, ClaimAnswered{claim.generation, won});
}

void Village::act(int number, const StartCoordinator& start) {
  const Term term = start.mandate.term;
  EXPECT_TRUE(elected.insert(term).second) << "two coordinators of term " << term;
  coordinators_[term] = {.place = number, .alive = true};
  feed(number, CoordinatorRuns{leader_of(term)});
}

void Village::act(int number, const Announce& announce) {
  for (const auto& [other, agent] : agents_) {
    const auto is_told = [&, &self = agent.self](const CircleAgent& whom) { return whom.is(self); };
    if (std::ranges::any_of(announce.whom, is_told) && reach(number, other)) {
      feed(other, LeaderFound{announce.leader});
    }
  }
}

}  // namespace dtrain::elastic
