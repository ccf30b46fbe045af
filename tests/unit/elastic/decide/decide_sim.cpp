#include "decide_sim.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

constexpr int kHosts = 6;
constexpr int kStepsOfAnEpoch = 12;
constexpr Duration kTick{100};

HostLine line_of(int number, int slots) {
  const std::string name = fmt::format("h{}", number);
  return {.name = name, .user = {}, .host = name, .port = 0, .slots = slots};
}

bool is_home(WorkerPhase phase) { return phase == WorkerPhase::ready || phase == WorkerPhase::member; }

}  // namespace

DecideSim::DecideSim(const Policy& policy, std::uint64_t seed)
    : seed_(seed), random_(seed, RandomUse::order, 1, 2), state_(initial_state(policy, {}, now_)) {
  HostsWanted wanted;
  for (int i = 0; i < 3; ++i) wanted.hosts.push_back(line_of(i, 1));
  for (const HostLine& line : wanted.hosts) wanted_.insert(line.name);
  feed(wanted);
}

void DecideSim::chaos(int ticks) {
  trouble_ = true;
  for (int i = 0; i < ticks && !finished_; ++i) tick();
}

void DecideSim::calm(int ticks) {
  trouble_ = false;
  for (auto& [id, worker] : workers_) worker.stopped = false;
  HostsWanted wanted{.hosts = {}, .by_person = true};
  wanted_.clear();
  drained_.clear();
  feed(HostsWanted{.hosts = {}, .by_person = true});
  for (int i = 0; i < 4; ++i) wanted.hosts.push_back(line_of(i, 1));
  for (const HostLine& line : wanted.hosts) wanted_.insert(line.name);
  feed(wanted);
  for (int i = 0; i < ticks && !finished_; ++i) tick();
}

void DecideSim::stop() { feed(StopAsked{"enough", false}); }

bool DecideSim::is_at_rest() const {
  if (!state_.current || state_.change || state_.freezing || !state_.current->stepped) return false;
  std::size_t allotted = 0;
  for (const auto& [name, host] : state_.hosts) allotted += host.allotted;
  const auto member = [&](WorkerId id) {
    const SimWorker& worker = workers_.at(id);
    return worker.alive && worker.current == state_.current->number && worker.frozen < worker.current;
  };
  return state_.current->members.size() == allotted && std::ranges::all_of(state_.current->members, member);
}

std::string DecideSim::describe() const {
  std::string text = fmt::format("seed {}, tick {}: ", seed_, tick_);
  text += state_.current ? fmt::format("generation {} of {}", state_.current->number, state_.current->members.size())
                         : std::string("no generation");
  if (state_.change) text += fmt::format(", change {} committed {}", state_.change->number, state_.change->committed);
  if (state_.freezing)
    text += fmt::format(", freezing {} awaits {}", state_.freezing->number, state_.freezing->awaited);
  if (state_.ending) text += fmt::format(", ending: {}", state_.ending->reason);
  for (const auto& [id, worker] : state_.workers) {
    text += fmt::format("\n  worker {} on {}: phase {}", id, worker.host, static_cast<int>(worker.phase));
  }
  for (const auto& [name, host] : state_.hosts) {
    text += fmt::format("\n  {}: {} ({})", name, enum_name(kHostPhaseNames, phase_of(state_, host, now_)),
                        host.last_failure);
  }
  return text;
}

void DecideSim::tick() {
  ++tick_;
  now_ += kTick;
  if (trouble_) make_trouble();
  for (auto& [id, worker] : workers_) {
    if (worker.alive && !worker.stopped) run_worker(worker);
  }
  run_generations();
  deliver();
  feed(Tick{});
}

void DecideSim::make_trouble() {
  if (chance(0.01)) edit_hosts();
  if (chance(0.002)) {
    const std::string host = fmt::format("h{}", between(0, kHosts - 1));
    if (wanted_.contains(host)) drained_.insert(host);
    feed(Drain{host, "a test"});
  }
  if (chance(0.003)) {
    const std::string host = fmt::format("h{}", between(0, kHosts - 1));
    if (agents_[host].up) {
      agents_[host] = {};
      for (auto& [id, worker] : workers_) worker.alive = worker.alive && worker.host != host;
      post(HostDown{host, "a test cut it off"}, between(0, 20));
    }
  }
  if (!state_.ending && chance(0.002)) lose_coordinator();
  for (auto& [id, worker] : workers_) {
    if (!worker.alive) continue;
    if (chance(0.002)) die(worker, 9);
    if (chance(0.001)) worker.stopped = true;
    if (worker.stopped && chance(0.02)) worker.stopped = false;
    if (chance(0.001)) worker.hung = true;
  }
  if (!memory_.empty() && chance(0.05)) {
    feed(memory_[static_cast<std::size_t>(between(0, static_cast<int>(memory_.size()) - 1))]);
  }
}

void DecideSim::lose_coordinator() {
  TakeoverState takeover{.election = {.term = ++term_, .voter_sets = {}, .tiebreakers = {}, .granted_by = {}},
                         .hosts = {}};
  if (voters_.committed) takeover.election.voter_sets.push_back(*voters_.committed);
  if (voters_.prepared) takeover.election.voter_sets.push_back(*voters_.prepared);
  for (const auto& [name, agent] : agents_) {
    if (agent.up) takeover.hosts.push_back(report_of(name));
  }
  from_hosts_.clear();  // in transit to the lost coordinator
  const Origin origin = recorded_origin(state_);
  HostsWanted wanted;
  for (const std::string& name : state_.order) wanted.hosts.push_back(state_.hosts.at(name).line);
  Decision decision = recover_state(state_.policy, origin, takeover, now_);
  state_ = std::move(decision.state);
  for (const Action& action : decision.actions) act(action);
  feed(wanted);
}

// A killed worker is gone before the report; the end of any other one is still in transit.
HostReport DecideSim::report_of(const std::string& host) const {
  HostReport report{.host = host, .address = "10.0.0.1", .voters = voters_, .workers = {}};
  for (const auto& [id, worker] : workers_) {
    const auto mails = from_workers_.find(id);
    const bool ending = mails != from_workers_.end() && !mails->second.empty();
    if (worker.host != host || known_dead_.contains(id) || (!worker.alive && !ending)) continue;
    const std::chrono::milliseconds silence{worker.stopped ? 4'000 : 0};
    WorkerReport& told = report.workers.emplace_back(WorkerReport{id, worker.slot, silence, {}});
    if (worker.stage == SimWorker::Stage::starting) continue;
    told.said.emplace_back(Hello{.pid = 1, .data = comm::PeerAddress{"10.0.0.1", 1}, .fingerprint = "same"});
    if (worker.stage >= SimWorker::Stage::waiting) told.said.emplace_back(Ready{worker.position});
    told.said.emplace_back(Progress{.generation = worker.current, .position = worker.position});
  }
  return report;
}

void DecideSim::edit_hosts() {
  HostsWanted wanted{.hosts = {}, .by_person = chance(0.5)};
  for (int i = 0; i < kHosts; ++i) {
    if (chance(0.6)) wanted.hosts.push_back(line_of(i, chance(0.2) ? 2 : 1));
  }
  feed(wanted);
  wanted_.clear();
  for (const std::string& name : state_.order) wanted_.insert(name);
  std::erase_if(drained_, [&](const std::string& name) { return !wanted_.contains(name); });
}

// Mail of one worker keeps its order; mail of hosts and workers may overtake each other.
void DecideSim::deliver() {
  for (auto& [id, mails] : from_workers_) {
    while (!mails.empty() && mails.front().tick <= tick_) {
      const Event event = std::move(mails.front().event);
      mails.pop_front();
      if (chance(0.1) && std::holds_alternative<WorkerSays>(event)) memory_.push_back(event);
      feed(event);
      if (std::holds_alternative<WorkerExited>(event)) known_dead_.insert(id);
    }
  }
  while (!from_hosts_.empty() && from_hosts_.front().tick <= tick_) {
    const Event event = std::move(from_hosts_.front().event);
    from_hosts_.pop_front();
    feed(event);
  }
}

void DecideSim::post(const Event& event, int delay) {
  const Mail mail{tick_ + delay, event};
  const auto place = std::ranges::upper_bound(from_hosts_, mail.tick, {}, &Mail::tick);
  from_hosts_.insert(place, mail);
}

void DecideSim::say(const SimWorker& worker, const FromWorker& message) {
  auto& mails = from_workers_[worker.id];
  const int earliest = mails.empty() ? tick_ : mails.back().tick;
  mails.push_back({std::max(earliest, tick_ + (chance(0.2) ? between(0, 5) : 0)), WorkerSays{worker.id, message}});
}

void DecideSim::die(SimWorker& worker, int signal) {
  worker.alive = false;
  auto& mails = from_workers_[worker.id];
  const int earliest = mails.empty() ? tick_ : mails.back().tick;
  mails.push_back({std::max(earliest, tick_ + between(0, 5)),
                   WorkerExited{.worker = worker.id, .exit_code = 0, .signal = signal, .last_lines = {}}});
}

void DecideSim::run_worker(SimWorker& worker) {
  using Stage = SimWorker::Stage;
  if (worker.stage == Stage::starting && --worker.ticks_to_go <= 0) {
    say(worker, Hello{.pid = 1, .data = comm::PeerAddress{"10.0.0.1", 1}, .fingerprint = "same"});
    worker.stage = Stage::building;
    worker.ticks_to_go = between(1, 20);
  } else if (worker.stage == Stage::building && !worker.hung && --worker.ticks_to_go <= 0) {
    say(worker, Ready{worker.position, "same"});
    worker.stage = Stage::waiting;
  }
  if (worker.stage != Stage::starting && (tick_ + static_cast<int>(worker.id)) % 3 == 0) heartbeat(worker);
  try_meshes(worker);
  if (worker.stage == Stage::waiting && !worker.hung) try_enter(worker);
  if (trouble_ && worker.stage < Stage::waiting && chance(0.01)) die(worker, 0);
}

void DecideSim::heartbeat(SimWorker& worker) {
  const bool trains = worker.stage == SimWorker::Stage::training, waits = worker.stage == SimWorker::Stage::waiting;
  worker.seconds_in_phase = worker.hung && (trains || waits) ? worker.seconds_in_phase + 0.3 : 0;
  say(worker, Progress{.generation = worker.current,
                       .phase = trains  ? (worker.hung ? Phase::loading : Phase::reducing)
                                : waits ? Phase::holding
                                        : Phase::building,
                       .position = worker.position,
                       .seconds_in_phase = worker.seconds_in_phase,
                       .step_seconds = 0.1,
                       .compute_seconds = 0.05});
}

void DecideSim::try_meshes(SimWorker& worker) {
  for (auto each = worker.meshing.begin(); each != worker.meshing.end();) {
    const auto [generation, ticks] = *each;
    const auto& members = worker.prepared.at(generation);
    const bool complete = std::ranges::all_of(members, [&](WorkerId id) {
      const SimWorker& peer = workers_.at(id);
      return peer.alive && !peer.stopped && peer.prepared.contains(generation);
    });
    if (ticks <= 0 && complete) {
      worker.meshed.insert(generation);
      say(worker, Meshed{generation, {}});
    } else if (ticks <= -100) {
      say(worker, Meshed{generation, "somebody is missing"});
    } else {
      --each->second;
      ++each;
      continue;
    }
    each = worker.meshing.erase(each);
  }
}

void DecideSim::try_enter(SimWorker& worker) {
  if (worker.leave) return leave_job(worker, Left::How::removed);
  const Generation next = worker.agreed != 0                                          ? worker.agreed
                          : worker.commit && worker.commit->boundary == Boundary::now ? worker.commit->generation
                                                                                      : 0;
  if (const auto found = worker.prepared.find(next); found != worker.prepared.end()) {
    if (std::ranges::find(found->second, worker.id) == found->second.end()) {
      return leave_job(worker, Left::How::removed);
    }
    if (worker.meshed.contains(next)) {
      worker.current = next;
      worker.agreed = 0;
      worker.commit.reset();
      worker.synced = false;
      worker.ticks_alone = 0;
      worker.stage = SimWorker::Stage::training;
      return;
    }
  }
  if (worker.stop) leave_job(worker, Left::How::stopped);
}

// Workers in the same generation act together.
void DecideSim::run_generations() {
  std::map<Generation, std::vector<WorkerId>> present;
  for (auto& [id, worker] : workers_) {
    if (worker.alive && worker.stage == SimWorker::Stage::training) present[worker.current].push_back(id);
  }
  for (const auto& [generation, ids] : present) {
    const std::vector<WorkerId>& plan = plans_.at(generation);
    const bool complete = std::ranges::all_of(plan, [&](WorkerId id) {
      const SimWorker& worker = workers_.at(id);
      return worker.alive && !worker.stopped && worker.stage == SimWorker::Stage::training &&
             worker.current == generation && worker.frozen < generation;
    });
    const bool stuck = std::ranges::any_of(ids, [&](WorkerId id) { return workers_.at(id).hung; });
    if (complete && !stuck) {
      const bool synced = std::ranges::all_of(plan, [&](WorkerId id) { return workers_.at(id).synced; });
      if (!synced) {
        sync(generation, plan);
      } else if (chance(0.5)) {
        train(generation, plan);
      }
      continue;
    }
    for (const WorkerId id : ids) {
      SimWorker& worker = workers_.at(id);
      const bool others_dead = std::ranges::any_of(plan, [&](WorkerId peer) { return !workers_.at(peer).alive; });
      if (worker.stopped || worker.hung) continue;
      if (worker.frozen >= generation || ++worker.ticks_alone > (others_dead ? between(1, 10) : 300))
        lose_others(worker);
    }
  }
}

void DecideSim::sync(Generation generation, const std::vector<WorkerId>& members) {
  TrainingPosition best;
  for (const WorkerId id : members) best = std::max(best, workers_.at(id).position);
  if (!best.has_state) {
    // Leavers go when they switch; if the last one who stays dies just then, the state is lost with them.
    for (const auto& [id, known] : state_.workers) {
      const SimWorker& worker = workers_.at(id);
      EXPECT_FALSE(worker.alive && !worker.stopped && worker.position.has_state && is_home(known.phase))
          << "worker " << id << " had the state, but generation " << generation << " began without it\n"
          << describe();
    }
  } else {
    EXPECT_LE(furthest_.samples_seen, best.samples_seen + 1) << "more than a step is lost\n" << describe();
  }
  best.has_state = true;
  furthest_ = best;
  for (const WorkerId id : members) {
    SimWorker& worker = workers_.at(id);
    worker.position = best;
    worker.synced = true;
    say(worker, Entered{generation, best});
  }
}

void DecideSim::train(Generation generation, const std::vector<WorkerId>& members) {
  EXPECT_GE(generation, last_stepped_) << "an old generation trained again\n" << describe();
  last_stepped_ = generation;
  TrainingPosition next = workers_.at(members.front()).position;
  ++next.samples_seen;
  if (++next.step == kStepsOfAnEpoch) {
    next.step = 0;
    ++next.epoch;
  }
  furthest_ = next;
  for (const WorkerId id : members) {
    SimWorker& worker = workers_.at(id);
    if (trouble_ && chance(0.003)) {  // some have applied the step, and some have not
      die(worker, 11);
      return;
    }
    worker.position = next;
    stepped_hosts_.insert(worker.host);
  }
  agree(members);
}

void DecideSim::agree(const std::vector<WorkerId>& members) {
  const SimWorker& first = workers_.at(members.front());
  const auto stops = [&](WorkerId id) { return workers_.at(id).stop.has_value(); };
  if (std::ranges::any_of(members, stops)) {
    for (const WorkerId id : members) leave_job(workers_.at(id), Left::How::stopped);
    return;
  }
  if (!first.commit || first.commit->boundary == Boundary::now) return;
  const Commit commit = *first.commit;
  if (commit.boundary == Boundary::epoch && first.position.step != 0) return;
  const bool all = std::ranges::all_of(members, [&](WorkerId id) {
    const auto& other = workers_.at(id).commit;
    return other && other->generation == commit.generation;
  });
  if (!all) return;
  for (const WorkerId id : members) {
    SimWorker& worker = workers_.at(id);
    worker.agreed = commit.generation;
    worker.stage = SimWorker::Stage::waiting;
  }
}

void DecideSim::lose_others(SimWorker& worker) {
  worker.stage = SimWorker::Stage::waiting;
  if (worker.frozen >= worker.current) return;
  worker.frozen = worker.current;
  say(worker, Lost{worker.current, worker.position, "somebody is gone"});
}

void DecideSim::leave_job(SimWorker& worker, Left::How how) {
  say(worker, Left{.how = how, .reason = {}, .position = worker.position});
  die(worker, 0);
}

void DecideSim::feed(const Event& event) {
  Decision decision = decide(std::move(state_), event, now_);
  state_ = std::move(decision.state);
  EXPECT_TRUE(decision.actions.empty() || !finished_) << "actions after Finish\n" << describe();
  for (const Action& action : decision.actions) act(action);
}

}  // namespace dtrain::elastic
