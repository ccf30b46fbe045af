// Applies the actions of a decision to the simulated hosts and workers, which check that they make sense.
#include <gtest/gtest.h>

#include <algorithm>

#include "decide_sim.hpp"

namespace dtrain::elastic {

void DecideSim::act(const Action& action) {
  std::visit([this](const auto& kind) { act_on(kind); }, action);
}

void DecideSim::act_on(const StartHost& start) {
  Agent& agent = agents_[start.host.name];
  agent = {.up = false, .coming = true, .ending = false};
  if (trouble_ && chance(0.1)) {
    agent.coming = false;
    return post(HostDown{start.host.name, "refused"}, between(0, 30));
  }
  agent.up = true;
  post(HostUp{start.host.name, "10.0.0.1"}, between(0, 10));
}

void DecideSim::act_on(const RunAdmissionCheck& check) {
  AdmissionCheckResult result;
  if (trouble_ && chance(0.3)) result.failure = "no data there";
  post(AdmissionChecked{check.host, result}, between(0, 30));
}

void DecideSim::act_on(const AnnounceVoters& told) {
  VoterSet voter_set{.generation = told.generation, .voters = {}, .members = told.members};
  for (const Member& member : told.members) voter_set.voters.push_back({member.host, "", {}});
  learn(voters_, {told.committed, voter_set});
  for (const auto& [name, agent] : agents_) {
    if (agent.up) post(HostKnows{name, told.generation}, between(0, 5));
  }
}

void DecideSim::act_on(const StartWorker& start) {
  EXPECT_FALSE(workers_.contains(start.worker)) << "a worker id is used twice\n" << describe();
  for (const auto& [id, worker] : workers_) {
    EXPECT_FALSE(worker.alive && worker.host == start.host && worker.slot == start.slot)
        << "two processes in one slot: " << id << " and " << start.worker << "\n"
        << describe();
  }
  SimWorker worker;
  worker.id = start.worker;
  worker.host = start.host;
  worker.slot = start.slot;
  worker.alive = agents_[start.host].up;
  worker.ticks_to_go = between(1, 10);
  workers_[start.worker] = worker;
}

void DecideSim::act_on(const Send& send) {
  if (const auto* prepare = std::get_if<Prepare>(&send.message)) {
    EXPECT_GT(prepare->generation, last_prepared_) << "a number is used twice\n" << describe();
    last_prepared_ = prepare->generation;
    for (const Member& member : prepare->members) plans_[prepare->generation].push_back(member.worker);
  }
  if (const auto* commit = std::get_if<Commit>(&send.message)) {
    EXPECT_EQ(commit->generation, last_prepared_) << "committed, but not the newest\n" << describe();
    EXPECT_EQ(commit->generation, last_journal_) << "committed before it was in the journal\n" << describe();
  }
  for (const WorkerId to : send.to) {
    EXPECT_FALSE(known_dead_.contains(to)) << "a message for a dead worker, " << to << "\n" << describe();
    SimWorker& worker = workers_.at(to);
    if (worker.alive) receive(worker, send.message);
  }
}

void DecideSim::act_on(const KillWorker& kill) {
  EXPECT_FALSE(known_dead_.contains(kill.worker)) << "killed twice: " << kill.worker << "\n" << describe();
  known_dead_.insert(kill.worker);
  SimWorker& worker = workers_.at(kill.worker);
  if (worker.alive) die(worker, 9);
}

void DecideSim::act_on(const EndHost& end) {
  for (auto& [id, worker] : workers_) {
    if (worker.host == end.host) worker.alive = false;
  }
  if (agents_[end.host].up) post(HostDown{end.host, "ended"}, between(0, 5));
  agents_[end.host] = {};
}

void DecideSim::act_on(const LogMembership& line) {
  EXPECT_NE(logged_[line.host], line.added) << line.host << " is logged twice\n" << describe();
  logged_[line.host] = line.added;
  if (line.added) {
    EXPECT_TRUE(stepped_hosts_.contains(line.host)) << line.host << " has not finished a step\n" << describe();
  } else {
    const bool asked = std::ranges::find(state_.order, line.host) == state_.order.end() || drained_.contains(line.host);
    EXPECT_TRUE(asked) << "nobody asked " << line.host << " to go\n" << describe();
  }
}

void DecideSim::act_on(const JournalEntry& entry) {
  if (entry.committed) last_journal_ = entry.generation;
}

void DecideSim::receive(SimWorker& worker, const ToWorker& message) {
  if (const auto* prepare = std::get_if<Prepare>(&message)) {
    std::vector<WorkerId> members;
    for (const Member& member : prepare->members) members.push_back(member.worker);
    std::erase_if(worker.meshing, [&](const auto& each) { return each.first != worker.agreed; });
    worker.prepared[prepare->generation] = members;
    if (std::ranges::find(members, worker.id) != members.end()) worker.meshing[prepare->generation] = between(0, 5);
  } else if (const auto* commit = std::get_if<Commit>(&message)) {
    if (commit->generation > std::max(worker.current, worker.frozen)) worker.commit = *commit;
  } else if (const auto* freeze = std::get_if<Freeze>(&message)) {
    if (freeze->generation < std::max(worker.current, worker.frozen)) return;
    worker.frozen = freeze->generation;
    if (worker.agreed <= freeze->generation) worker.agreed = 0;
    if (worker.commit && worker.commit->generation <= freeze->generation) worker.commit.reset();
    if (!worker.stopped) say(worker, Frozen{freeze->generation, worker.position});
  } else if (std::holds_alternative<Leave>(message)) {
    worker.leave = true;
  } else {
    worker.stop = std::get<Stop>(message);
  }
}

}  // namespace dtrain::elastic
