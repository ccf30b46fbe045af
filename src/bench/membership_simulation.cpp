#include "membership_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/elastic/coordinator.hpp>
#include <dtrain/elastic/job_files.hpp>
#include <dtrain/train/transfer_plan.hpp>

#include "timetable.hpp"

namespace dtrain::bench {
namespace {

using namespace elastic;

constexpr double kTick = 0.05, kHeartbeat = 0.2;  // as of a real job
constexpr double kPatience = 3600;                // until a change has come about
constexpr double kOfferBytes = 2048;              // what a rank says of its state, about
constexpr double kSilence = 3;                    // of a coordinator that counts as lost

Time time_at(double seconds) {
  return Time{std::chrono::hours(1) +
              std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(seconds))};
}
Moment moment_at(double seconds) {
  const auto wall = std::chrono::hours(480'000) + std::chrono::duration<double>(seconds);
  return {time_at(seconds), WallTime{std::chrono::duration_cast<WallTime::duration>(wall)}};
}

struct SimulatedWorker {
  std::string host;
  Generation generation = 0;  // that it trains in
  bool is_silent = false, is_gone = false;
};

class SimulatedJob final : public AgentPool {
 public:
  explicit SimulatedJob(const MembershipModel& model) : model_(model) {
    write_hosts(model.ranks);
    coordinator_ = std::make_unique<Coordinator>(options(), *this, moment_at(0));
    tick();
    beat();
    until([&] { return trains(model_.ranks); }, "the job starts");
  }
  ~SimulatedJob() override { coordinator_.reset(); }

  SimulatedChange join() {
    write_hosts(model_.ranks + model_.newcomers);
    const double begin = clock_.now();
    request(Json::object({{"ask", "hosts-changed"}}));
    until([&] { return trains(model_.ranks + model_.newcomers); }, "newcomers join");
    return {.noticed = committed_at_ - begin, .pause = trains_since_ - stopped_at_, .state = moved_for_};
  }

  SimulatedChange lose(bool silently) {
    SimulatedWorker& victim = first_member();  // another host each time
    const std::size_t members = count_members();
    const double begin = clock_.now();
    freeze_at_ = resumed_at_ = 0;
    stop_training();  // the others wait for it
    victim.is_silent = true;
    if (!silently) worker_ends(victim);
    until([&] { return resumed_at_ > 0; }, "the others go on");
    const SimulatedChange change{.noticed = freeze_at_ - begin, .pause = resumed_at_ - begin, .state = moved_for_};
    until([&] { return trains(static_cast<int>(members)); }, "the lost worker is replaced");
    return change;
  }

  // The agents notice the silence, one of them asks the others twice, and starts a coordinator, to which all connect.
  SimulatedChange take_over() {
    const double begin = clock_.now(), voters = static_cast<double>(count_members());
    const double ballots = 2 * (2 * model_.link.latency + voters * model_.message);
    const double come = voters * (model_.connection + 2 * model_.message) + 4 * model_.link.latency;
    coordinator_.reset();
    is_led_ = false;
    run_until(begin + kSilence + ballots + come);
    freeze_at_ = resumed_at_ = 0;
    CoordinatorOptions next = options();
    next.term = 2;
    next.takeover = takeover_state();
    is_led_ = true;
    busy_until_ = clock_.now();
    coordinator_ = std::make_unique<Coordinator>(std::move(next), *this, moment_at(clock_.now()));
    coordinator_->tick(moment_at(clock_.now()));
    until([&] { return resumed_at_ > 0; }, "a new coordinator goes on");
    return {.noticed = freeze_at_ - begin, .pause = resumed_at_ - stopped_at_, .state = moved_for_};
  }

  // ---- AgentPool

  void start_host(const HostLine& host) override {
    agents_.insert(host.name);
    tell(HostUp{host.name, "10.0.0.1"});
  }
  void run_admission_check(const std::string& host) override { tell(AdmissionChecked{host, {}}); }
  void start_worker(const std::string& host, int, WorkerId worker) override {
    workers_[worker] = {.host = host};
    tell(WorkerSays{worker, hello_of(worker)});
    tell(WorkerSays{worker, Ready{}});
  }
  void send(WorkerId worker, const ToWorker& message) override { send_all({worker}, message); }
  void send_all(const std::vector<WorkerId>& workers, const ToWorker& message) override {
    const auto shared = std::make_shared<const ToWorker>(message);
    for (const WorkerId worker : workers) {
      clock_.at(written() + model_.link.latency, [this, worker, shared] { hear(worker, *shared); });
    }
  }
  void kill_worker(WorkerId worker, bool) override { worker_ends(workers_.at(worker)); }
  void end_host(const std::string& host) override { tell(HostDown{host, "ended"}); }
  void announce_voters(Generation generation, bool, const std::vector<Member>&) override {
    for (const std::string& host : agents_) {
      clock_.at(written() + model_.link.latency, [this, host, generation] { tell(HostKnows{host, generation}); });
    }
  }
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point) const override {
    return names.size();
  }

 private:
  CoordinatorOptions options() const {
    CoordinatorOptions options;
    options.folder = folder_.path();
    options.policy.elastic = options.policy.quorum = true;
    options.policy.boundary = Boundary::step;
    options.policy.heartbeat_timeout = std::chrono::milliseconds(static_cast<int>(1e3 * kSilence));
    return options;
  }

  void write_hosts(int count) const {
    std::string text;
    for (int i = 0; i < count; ++i) text += fmt::format("host{}\n", i);
    write_file_atomic(folder_.path() / job_file::kHosts, text);
  }

  Hello hello_of(WorkerId worker) const {
    return {1000, {"10.0.0.1", static_cast<std::uint16_t>(1024 + worker % 60'000)}, "fingerprint"};
  }

  // ---- time

  template <typename Done>
  void until(const Done& done, const char* what) {
    const double limit = clock_.now() + kPatience;
    while (!done()) {
      if (clock_.now() > limit) throw Error(fmt::format("in the simulation of {} ranks, {} never", model_.ranks, what));
      clock_.advance();
    }
  }
  void run_until(double time) {
    bool there = false;
    clock_.at(time, [&] { there = true; });
    until([&] { return there; }, "time passes");
  }

  void tick() {
    if (is_led_) coordinator_->tick(moment_at(clock_.now()));
    clock_.at(clock_.now() + kTick, [this] { tick(); });
  }
  void beat() {
    for (auto& [id, worker] : workers_) {
      if (worker.is_silent || worker.is_gone) continue;
      tell(WorkerSays{id, progress_of(worker)});
    }
    clock_.at(clock_.now() + kHeartbeat, [this] { beat(); });
  }

  // ---- the coordinator's thread

  double written() {
    busy_until_ = std::max(busy_until_, clock_.now()) + model_.message;
    return busy_until_;
  }
  // It comes after the latency of the link, and is read when the thread has time.
  void tell(AgentPoolEvent event) {
    auto shared = std::make_shared<AgentPoolEvent>(std::move(event));
    clock_.at(clock_.now() + model_.link.latency, [this, shared] {
      clock_.at(written(), [this, shared] {
        if (is_led_) coordinator_->feed(std::move(*shared), moment_at(clock_.now()));
      });
    });
  }
  void request(Json body) {
    if (is_led_) coordinator_->feed(Request{std::move(body), [](const Json&) {}}, moment_at(clock_.now()));
  }

  // ---- workers

  bool is_member(const SimulatedWorker& worker) const {
    return worker.generation == trained_ && trained_ > 0 && !worker.is_gone;
  }
  std::size_t count_members() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(workers_, [&](const auto& each) { return is_member(each.second); }));
  }
  SimulatedWorker& first_member() {
    const auto found = std::ranges::find_if(workers_, [&](const auto& each) { return is_member(each.second); });
    DTRAIN_CHECK(found != workers_.end(), "a job that trains has members");
    return found->second;
  }
  bool trains(int members) const {
    return trained_ > 0 && clock_.now() >= trains_since_ + model_.step && coordinator_->is_training() &&
           count_members() == static_cast<std::size_t>(members);
  }

  std::uint64_t steps() const {
    const double passed = std::max(0.0, clock_.now() - trains_since_);
    return steps_before_ + static_cast<std::uint64_t>(std::floor(passed / model_.step));
  }
  TrainingPosition position() const { return {true, 0, steps(), 8192 * steps()}; }
  Progress progress_of(const SimulatedWorker& worker) const {
    if (worker.generation == 0) return {.phase = Phase::building, .position = {}};
    const bool enters = worker.generation > trained_;
    return {worker.generation, enters ? Phase::entering : Phase::computing, position(), 0.01, model_.step, model_.step};
  }

  void worker_ends(SimulatedWorker& worker) {
    if (std::exchange(worker.is_gone, true)) return;
    for (const auto& [id, each] : workers_) {
      if (&each == &worker) tell(WorkerExited{id, 0, 9, {}});
    }
  }

  void hear(WorkerId id, const ToWorker& message) {
    SimulatedWorker& worker = workers_.at(id);
    if (worker.is_gone || worker.is_silent) return;
    if (const auto* prepare = std::get_if<Prepare>(&message)) return prepared(id, *prepare);
    if (const auto* commit = std::get_if<Commit>(&message)) return committed(id, *commit);
    if (std::holds_alternative<Leave>(message)) return worker_ends(worker);
    if (const auto* freeze = std::get_if<Freeze>(&message)) {
      if (freeze_at_ == 0) freeze_at_ = clock_.now();
      stop_training();
      tell(WorkerSays{id, Frozen{freeze->generation, position()}});
    }
  }

  void stop_training() {
    if (std::isinf(trains_since_)) return;
    steps_before_ = steps();
    stopped_at_ = clock_.now();
    trains_since_ = std::numeric_limits<double>::infinity();
  }

  void prepared(WorkerId id, const Prepare& prepare) {
    Plan& plan = plans_[prepare.generation];
    plan.members = prepare.members;
    plan.know.insert(id);
    if (plan.know.size() < plan.members.size()) return;
    const double connections = static_cast<double>(plan.members.size() - 1) * model_.connection;
    clock_.at(clock_.now() + connections + 4 * model_.link.latency, [this, generation = prepare.generation] {
      for (const WorkerId each : plans_[generation].know) tell(WorkerSays{each, Meshed{generation, ""}});
    });
  }

  // Members of the generation before switch together, at the end of a step; all others enter at once.
  void committed(WorkerId id, const Commit& commit) {
    Plan& plan = plans_[commit.generation];
    if (commit.boundary == Boundary::now || !is_member(workers_.at(id)) || std::isinf(trains_since_)) {
      return enter(id, commit.generation);
    }
    plan.told.insert(id);
    const auto was_told = [&](const auto& each) { return !is_member(each.second) || plan.told.contains(each.first); };
    if (!std::ranges::all_of(workers_, was_told)) return;
    committed_at_ = clock_.now();
    const double made = std::ceil((clock_.now() - trains_since_) / model_.step);
    clock_.at(trains_since_ + made * model_.step, [this, generation = commit.generation] {
      stop_training();
      for (const WorkerId each : plans_[generation].told) enter(each, generation);
    });
  }

  void enter(WorkerId id, Generation generation) {
    Plan& plan = plans_[generation];
    plan.entered.insert(id);
    workers_.at(id).generation = generation;
    tell(WorkerSays{id, progress_of(workers_.at(id))});
    if (plan.entered.size() < plan.members.size()) return;
    const auto members = static_cast<double>(plan.members.size());
    const double offers = 2 * model_.link.latency + members * kOfferBytes / model_.link.bytes_per_second;
    const bool brings_newcomers = trained_ > 0 && plan.told.size() < plan.members.size() && !plan.told.empty();
    moved_for_ = brings_newcomers ? transfer_seconds(model_) : 0;
    clock_.at(clock_.now() + offers + moved_for_, [this, generation] { train(generation); });
  }

  void train(Generation generation) {
    trained_ = generation;
    trains_since_ = clock_.now();
    if (freeze_at_ > 0 && resumed_at_ == 0) resumed_at_ = clock_.now();
    for (const WorkerId each : plans_[generation].entered) tell(WorkerSays{each, Entered{generation, position()}});
  }

  TakeoverState takeover_state() const {
    const Plan& plan = plans_.at(trained_);
    VoterSet voters{.generation = trained_, .voters = {}, .members = plan.members};
    TakeoverState state;
    state.election.term = 2;
    for (const Member& member : plan.members) {
      voters.voters.push_back({member.host, "tree", member.data});
      state.election.granted_by.push_back(member.host);
      const SimulatedWorker& worker = workers_.at(member.worker);
      WorkerReport report{.worker = member.worker, .slot = member.slot, .silence = {}, .said = {}};
      report.said = {hello_of(member.worker), Ready{}, progress_of(worker)};
      state.hosts.push_back({.host = member.host, .address = "10.0.0.1", .voters = {}, .workers = {std::move(report)}});
    }
    state.election.voter_sets.push_back(std::move(voters));
    return state;
  }

  struct Plan {
    std::vector<Member> members;
    std::set<WorkerId> know, told, entered;
  };

  const MembershipModel model_;
  ScratchFolder folder_{"dtrain-membership"};
  Timetable clock_;
  double busy_until_ = 0;  // the coordinator's thread
  bool is_led_ = true;
  std::set<std::string> agents_;  // hosts
  std::map<WorkerId, SimulatedWorker> workers_;
  std::map<Generation, Plan> plans_;
  Generation trained_ = 0;  // the newest that all have entered
  std::uint64_t steps_before_ = 0;
  double trains_since_ = std::numeric_limits<double>::infinity();  // infinite: it stands still
  double stopped_at_ = 0, committed_at_ = 0, freeze_at_ = 0, resumed_at_ = 0, moved_for_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace

double transfer_seconds(const MembershipModel& model) {
  train::Roles roles;
  for (int rank = 0; rank < model.ranks; ++rank) roles.holders.push_back(rank);
  for (int rank = 0; rank < model.newcomers; ++rank) roles.receivers.push_back(model.ranks + rank);
  const auto chunks = static_cast<std::size_t>(std::ceil(model.state_bytes / train::kTransferChunk));
  const double bytes = model.state_bytes / static_cast<double>(std::max<std::size_t>(1, chunks));
  const double seconds = bytes / model.link.bytes_per_second;
  const auto all = static_cast<std::size_t>(model.ranks) + static_cast<std::size_t>(model.newcomers);
  // When the rank comes to its next transfer, and when its link has carried the last one in each direction.
  std::vector<double> next(all), out(all), in(all);
  for (const train::Transfer& transfer : train::plan_transfers(roles, chunks)) {
    const auto from = static_cast<std::size_t>(transfer.from), to = static_cast<std::size_t>(transfer.to);
    const double begin = std::max(next[from], out[from]);
    next[from] = begin;  // what a chunk is written to has room for one
    out[from] = begin + seconds;
    in[to] = std::max(in[to], begin + model.link.latency) + seconds;
    next[to] = std::max(next[to], in[to]);
  }
  return std::ranges::max(next);
}

SimulatedChanges simulate_membership(const MembershipModel& model) {
  SimulatedChanges changes;
  changes.join = SimulatedJob(model).join();
  SimulatedJob job(model);
  changes.killed = job.lose(false);
  changes.silent = job.lose(true);
  changes.takeover = job.take_over();
  return changes;
}

}  // namespace dtrain::bench
