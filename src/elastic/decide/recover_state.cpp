// The state of a coordinator that takes over, recovered from the reports of the agents.
//
// The agents say for how long each worker has been silent, so a worker that hung before the takeover is evicted without
// a second wait. It gets kAnswerTime all the same: its agent may have been held up with messages of it unread.
//
// The host file is not what says which hosts the job has: it may be half written, or name a list that was refused. The
// job keeps the hosts that the events list, host_worker_log or the agents name, except those that an accepted list
// removed. Events may be missing, so a host that only an agent names stays too.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr Duration kAnswerTime{500};

HostLine line_of_name(const std::string& name) {
  HostList list = parse_host_file(name);
  return list.hosts.size() == 1 ? std::move(list.hosts.front()) : HostLine{.name = name, .host = name};
}

struct StateRecovery {
  DecisionContext& context;
  const TakeoverState& takeover;
  const Origin& origin;

  State& state() const { return context.state; }

  void take_host(const HostReport& report) const {
    Host& host = state().hosts[report.host];
    host.line = line_of_name(report.host);
    host.agent = AgentState::up;
    host.agent_since = context.now;
    host.address = report.address;
    host.admission = report.workers.empty() ? AdmissionState::unchecked : AdmissionState::passed;
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
    worker.heard = context.now - report.silence;
    context.enter_phase(worker, WorkerPhase::starting);
    for (const FromWorker& message : report.said)
      std::visit([&](const auto& kind) { remember(worker, kind); }, message);
    if (origin.earlier.done.contains(worker.id)) remember_done(worker);
    state().next_worker = std::max(state().next_worker, report.worker + 1);
  }

  void remember(Worker& worker, const Hello& hello) const {
    note_hello(context, worker, hello);
    context.enter_phase(worker, WorkerPhase::preparing);
  }
  void remember(Worker& worker, const Ready& ready) const {
    worker.position = ready.position;
    worker.probe = ready.probe;
    context.enter_phase(worker, WorkerPhase::ready);
  }
  void remember(Worker& worker, const Progress& progress) const {
    worker.progress = progress;
    worker.progress_at = context.now;
    worker.position = progress.position;
    worker.entered = progress.generation;
  }
  void remember(Worker&, const auto&) const {}

  // Its last message went to an earlier coordinator. It may be silent until its process ends.
  void remember_done(Worker& worker) const {
    context.enter_phase(worker, WorkerPhase::leaving);
    worker.left = Left{.how = Left::How::done, .reason = {}, .position = worker.position};
  }

  // The newest of all generations that are known. Members of any generation freeze in it.
  Generation newest_generation() const {
    Generation newest = state().next_generation - 1;
    for (const VoterSet& voter_set : all_voter_sets()) newest = std::max(newest, voter_set.generation);
    for (const auto& [id, worker] : state().workers) newest = std::max(newest, worker.entered);
    return newest;
  }

  std::vector<VoterSet> all_voter_sets() const {
    std::vector<VoterSet> voters = takeover.election.voter_sets;
    for (const HostReport& report : takeover.hosts) {
      if (report.voters.committed) voters.push_back(*report.voters.committed);
      if (report.voters.prepared) voters.push_back(*report.voters.prepared);
    }
    std::ranges::stable_sort(voters, std::greater{}, &VoterSet::generation);
    return voters;
  }

  // Workers that train or were to train: in the order of the newest generation, then the others.
  std::vector<WorkerId> members() const {
    std::vector<WorkerId> members;
    const auto add = [&](WorkerId id) {
      const Worker* worker = context.find(id);
      if (worker && worker->phase == WorkerPhase::ready && !contains(members, id)) members.push_back(id);
    };
    for (const VoterSet& voter_set : all_voter_sets()) {
      for (const Member& member : voter_set.members) add(member.worker);
    }
    for (const auto& [id, worker] : state().workers) {
      if (worker.entered > 0) add(id);
    }
    return members;
  }

  // In the generation that the worker has entered; unset: no agent knows that any more.
  static std::optional<int> committed_rank(const std::vector<VoterSet>& voter_sets, const Worker& worker) {
    const auto known = std::ranges::find(voter_sets, worker.entered, &VoterSet::generation);
    if (known == voter_sets.end()) return std::nullopt;
    const auto found = std::ranges::find(known->members, worker.id, &Member::worker);
    if (found == known->members.end()) return std::nullopt;
    return static_cast<int>(found - known->members.begin());
  }

  void freeze_members(Generation number) const {
    std::vector<WorkerId> ids = members();
    if (ids.empty()) return;
    const std::vector<VoterSet> voter_sets = all_voter_sets();
    for (const WorkerId id : ids) {
      Worker& worker = state().workers.at(id);
      worker.rank = committed_rank(voter_sets, worker);
      worker.invited = number;
      worker.stepped = worker.position.has_state && context.host_of(worker).logged;
      context.enter_phase(worker, WorkerPhase::member);
      state().furthest = std::max(state().furthest, worker.position);
      if (state().fingerprint.empty()) state().fingerprint = worker.fingerprint;
      if (state().probe.empty()) state().probe = worker.probe;
    }
    state().current.emplace();
    state().current->number = number;
    state().current->members = std::move(ids);
    state().current->committed = state().current->stepped = true;
    begin_freeze(context, "a new coordinator took over", work_ended(context, state().current->members));
    state().freezing->at_takeover = true;
  }

  // Members of the last generation that the agents do not report. Those of a job that ends may have left.
  void report_absent_members() const {
    if (origin.earlier.stop || !origin.earlier.done.empty()) return;
    std::optional<VoterSet> committed;
    for (const HostReport& report : takeover.hosts) {
      const auto& known = report.voters.committed;
      if (known && (!committed || committed->generation < known->generation)) committed = known;
    }
    if (!committed && !takeover.election.voter_sets.empty()) committed = takeover.election.voter_sets.front();
    if (!committed) return;
    for (std::size_t rank = 0; rank < committed->members.size(); ++rank) {
      const Member& member = committed->members[rank];
      if (context.find(member.worker) || origin.earlier.unlisted.contains(member.host)) continue;
      if (!origin.earlier.drained.contains(member.host)) report_absent(member, rank, committed->generation);
    }
  }

  void report_absent(const Member& member, std::size_t rank, Generation generation) const {
    const bool came = std::ranges::find(takeover.hosts, member.host, &HostReport::host) != takeover.hosts.end();
    const char* reason = came ? "it ended while the job had no coordinator"
                              : "its host's agent did not come to the new coordinator: host or network are lost";
    Worker worker;
    worker.id = member.worker;
    worker.host = member.host;
    worker.slot = member.slot;
    context.emit(EventKind::failed, worker,
                 {{"rank", rank}, {"generation", generation}, {"reason", reason}, {"last_lines", Json::array()}});
    context.say(fmt::format("{}, rank {}, is lost: {}", name_of(worker), rank, reason),
                fmt::format("{} is started again automatically", member.host), Say::Kind::warning);
    ++state().failures;
  }

  // A newcomer may have come while there was no coordinator.
  void refuse_other_bits() const {
    for (const WorkerId id : context.worker_ids()) {
      const Worker& worker = state().workers.at(id);
      if (is_member(worker) || worker.phase == WorkerPhase::starting) continue;
      if (!refuse_other_machine(context, worker)) refuse_other_probe(context, worker);
    }
  }

  std::vector<std::string> member_hosts() const {
    std::vector<std::string> names;
    for (const VoterSet& voter_set : all_voter_sets()) {
      for (const Member& member : voter_set.members) names.push_back(member.host);
    }
    return names;
  }

  // Hosts of members, and of agents that came.
  std::vector<std::string> used_hosts() const {
    std::vector<std::string> names = member_hosts();
    for (const HostReport& report : takeover.hosts) names.push_back(report.host);
    return names;
  }

  void list_hosts() const {
    state().edits = 1;
    for (const auto& names : {origin.earlier.listed, used_hosts(), origin.logged}) {
      for (const std::string& name : names) {
        if (!origin.earlier.unlisted.contains(name)) list_host(name);
      }
    }
    const std::vector<std::string> members = member_hosts();
    const std::set<std::string> known(members.begin(), members.end());
    for (auto& [name, host] : state().hosts) host.newcomer = !host.logged && !known.contains(name);
  }

  void list_host(const std::string& name) const {
    Host& host = state().hosts[name];
    if (std::exchange(host.wanted, true)) return;
    if (host.line.host.empty()) host.line = line_of_name(name);
    host.slots.resize(std::max(host.slots.size(), static_cast<std::size_t>(host.line.slots)));
    host.edit = state().edits;
    host.edited = context.now;
    host.agent_ended = host.agent == AgentState::none && origin.earlier.drained.contains(name);
    state().order.push_back(name);
  }

  void take_voter_sets() const {
    const ElectionResult& election = takeover.election;
    for (const VoterSet& voter_set : election.voter_sets) {
      VoterHosts voters{.generation = voter_set.generation, .hosts = {}};
      for (const Voter& agent : voter_set.voters) voters.hosts.push_back(agent.host);
      voters.has_tiebreaker =
          std::ranges::find(election.tiebreakers, voter_set.generation + 1) != election.tiebreakers.end();
      state().voter_sets.push_back(std::move(voters));
    }
  }
};

}  // namespace

Decision recover_state(const Policy& policy, const Origin& origin, const TakeoverState& takeover, Time now) {
  Decision decision{initial_state(policy, origin, now), {}};
  decision.state.trained_before = origin.earlier.trained;
  decision.state.heard_floor = now - std::max(policy.heartbeat_timeout - kAnswerTime, Duration{0});
  DecisionContext context{decision.state, decision.actions, now};
  const StateRecovery recovery{context, takeover, origin};
  for (const HostReport& report : takeover.hosts) recovery.take_host(report);
  recovery.list_hosts();
  const Generation number = recovery.newest_generation();
  decision.state.next_generation = number + 1;
  Json hosts = Json::array();
  for (const HostReport& report : takeover.hosts) hosts.push_back(report.host);
  context.emit(
      EventKind::takeover,
      {{"term", takeover.election.term}, {"hosts", std::move(hosts)}, {"workers", decision.state.workers.size()}});
  recovery.take_voter_sets();
  recovery.report_absent_members();
  recovery.freeze_members(number);
  recovery.refuse_other_bits();
  return decision;
}

}  // namespace dtrain::elastic
