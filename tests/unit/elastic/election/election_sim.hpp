// Agents that elect a coordinator, over a network that a test cuts, in simulated time.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "election/elect.hpp"

namespace dtrain::elastic {

using namespace std::chrono_literals;

inline Voter voter(int number) {
  return {.host = fmt::format("w{}", number),
          .tree = fmt::format("tree{}", number),
          .address = {fmt::format("10.0.0.{}", number), 1}};
}

inline VoterSet voter_set_of(Generation generation, const std::vector<int>& numbers) {
  VoterSet voter_set{.generation = generation, .voters = {}, .members = {}};
  for (const int number : numbers) voter_set.voters.push_back(voter(number));
  return voter_set;
}

// Agents 1..count of the committed generation 1 follow coordinator 1, which runs where `coordinator_at` says.
class ElectionSim {
 public:
  static constexpr int kElsewhere = 0;  // a machine of its own

  explicit ElectionSim(int count, int coordinator_at = kElsewhere);

  // Only agents in the same group reach each other; those in `folder` reach the job folder.
  void cut(const std::vector<std::set<int>>& groups, const std::set<int>& folder);
  void heal();
  void kill_machine(int number);  // with the coordinator, if it runs there
  void kill_coordinator(Term term) { coordinators_.at(term).alive = false; }
  void prepare(Generation generation, const std::vector<int>& members, const std::vector<int>& told);
  void pass(std::chrono::milliseconds time);

  const Election& agent(int number) const { return agents_.at(number); }
  std::map<Term, int> coordinators() const;  // where the living ones run
  std::set<Term> elected;                    // ever
  std::set<int> gave_up;
  std::set<int> unfit;  // no coordinator starts there
  // Agents that are connected to this coordinator.
  std::set<int> followers(Term term) const;

 private:
  struct Coordinator {
    int place = 0;
    bool alive = true;
  };

  bool reach(int from, int to) const;
  Leader leader_of(Term term) const;
  const Coordinator* reachable(int from, const Leader& leader) const;
  void feed(int number, const ElectEvent& event);
  void act(int number, const Dial& dial);
  void act(int number, const LookAround&);
  void act(int number, const RequestVotes& ask);
  void act(int number, const Answer& answer) { answers_[number] = answer.vote; }
  void act(int number, const HangUp& hang_up);
  void act(int number, const AcquireTiebreaker& tiebreaker);
  void act(int number, const StartCoordinator& start);
  void act(int number, const Announce& announce);
  void act(int number, const GiveUp&) { gave_up.insert(number); }
  void act(int, const Note&) {}

  Time now_{1h};
  std::map<int, Election> agents_;
  std::map<Term, Coordinator> coordinators_;
  std::map<int, Vote> answers_;
  std::map<Generation, int> tiebreakers_;
  std::map<int, int> group_;
  std::set<int> sees_folder_, dead_;
};

}  // namespace dtrain::elastic
