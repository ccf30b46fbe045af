// A coordinator that takes over: the state that the agents' reports amount to.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

struct Heir {
  Turn& turn;
  const Inheritance& inheritance;

  State& state() const { return turn.state; }

  void take_host(const HostReport& report) const {
    Host& host = state().hosts[report.host];
    host.line.name = host.line.host = report.host;
    host.agent = AgentState::up;
    host.agent_since = turn.now;
    host.address = report.address;
    host.gate = report.workers.empty() ? Gate::closed : Gate::open;
    for (const WorkerReport& each : report.workers) take_worker(host, each);
  }

  void take_worker(Host& host, const WorkerReport& report) const {
    const auto slot = static_cast<std::size_t>(report.slot);
    host.slots.resize(std::max(host.slots.size(), slot + 1));
    host.line.slots = std::max(host.line.slots, report.slot + 1);
    host.slots[slot] = report.worker;
    Worker& worker = state().workers[report.worker];
    worker.id = report.worker;
    worker.host = host.line.name;
    worker.slot = report.slot;
    worker.heard = turn.now;
    turn.enter_phase(worker, WorkerPhase::starting);
    for (const FromWorker& message : report.said)
      std::visit([&](const auto& kind) { remember(worker, kind); }, message);
    state().next_worker = std::max(state().next_worker, report.worker + 1);
  }

  void remember(Worker& worker, const Hello& hello) const {
    note_hello(turn, worker, hello);
    if (state().fingerprint.empty()) state().fingerprint = hello.fingerprint;
    turn.enter_phase(worker, WorkerPhase::preparing);
  }
  void remember(Worker& worker, const Ready& ready) const {
    worker.standing = ready.standing;
    turn.enter_phase(worker, WorkerPhase::ready);
  }
  void remember(Worker& worker, const Progress& progress) const {
    worker.progress = progress;
    worker.progress_at = turn.now;
    worker.standing = progress.standing;
    worker.entered = progress.generation;
  }
  void remember(Worker&, const auto&) const {}

  // All generations that anybody knows of. Whatever they are in, they freeze in the newest.
  Generation newest_generation() const {
    Generation newest = state().next_generation - 1;
    for (const Circle& circle : all_circles()) newest = std::max(newest, circle.generation);
    for (const auto& [id, worker] : state().workers) newest = std::max(newest, worker.entered);
    return newest;
  }

  std::vector<Circle> all_circles() const {
    std::vector<Circle> circles = inheritance.mandate.circles;
    for (const HostReport& report : inheritance.hosts) {
      if (report.circles.committed) circles.push_back(*report.circles.committed);
      if (report.circles.prepared) circles.push_back(*report.circles.prepared);
    }
    std::ranges::stable_sort(circles, std::greater{}, &Circle::generation);
    return circles;
  }

  // Whoever trains, or was to: in the order of the newest generation, then the others.
  std::vector<WorkerId> members() const {
    std::vector<WorkerId> members;
    const auto add = [&](WorkerId id) {
      const Worker* worker = turn.find(id);
      if (worker && worker->phase == WorkerPhase::ready && !contains(members, id)) members.push_back(id);
    };
    for (const Circle& circle : all_circles()) {
      for (const Member& member : circle.members) add(member.worker);
    }
    for (const auto& [id, worker] : state().workers) {
      if (worker.entered > 0) add(id);
    }
    return members;
  }

  void freeze_members(Generation number) const {
    std::vector<WorkerId> ids = members();
    if (ids.empty()) return;
    for (const WorkerId id : ids) {
      Worker& worker = state().workers.at(id);
      worker.invited = number;
      worker.stepped = worker.standing.has_state;
      turn.enter_phase(worker, WorkerPhase::member);
      state().furthest = std::max(state().furthest, worker.standing);
    }
    state().current.emplace();
    state().current->number = number;
    state().current->members = std::move(ids);
    state().current->committed = state().current->stepped = true;
    begin_freeze(turn, "a new coordinator took over", std::nullopt);
  }

  void take_electorates() const {
    const Mandate& mandate = inheritance.mandate;
    for (const Circle& circle : mandate.circles) {
      Electorate electorate{.generation = circle.generation, .hosts = {}};
      for (const CircleAgent& agent : circle.agents) electorate.hosts.push_back(agent.host);
      electorate.claimed = std::ranges::find(mandate.claimed, circle.generation + 1) != mandate.claimed.end();
      state().electorates.push_back(std::move(electorate));
    }
  }
};

}  // namespace

Decision inherit(const Policy& policy, const Origin& origin, const Inheritance& inheritance, Time now) {
  Decision decision{initial_state(policy, origin, now), {}};
  Turn turn{decision.state, decision.actions, now};
  const Heir heir{turn, inheritance};
  for (const HostReport& report : inheritance.hosts) heir.take_host(report);
  const Generation number = heir.newest_generation();
  decision.state.next_generation = number + 1;
  Json hosts = Json::array();
  for (const HostReport& report : inheritance.hosts) hosts.push_back(report.host);
  turn.emit(
      "takeover",
      {{"term", inheritance.mandate.term}, {"hosts", std::move(hosts)}, {"workers", decision.state.workers.size()}});
  heir.take_electorates();
  heir.freeze_members(number);
  return decision;
}

}  // namespace dtrain::elastic
