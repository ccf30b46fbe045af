#include <dtrain/elastic/session.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <dtrain/base/stop.hpp>

#include "mesh_builder.hpp"
#include "phase_clock.hpp"
#include "shared_communicator.hpp"
#include "vote.hpp"

namespace dtrain::elastic {
namespace {

using Clock = std::chrono::steady_clock;

// A generation that the coordinator prepared and this worker has not entered.
struct Prepared {
  bool member = false;
  std::unique_ptr<comm::Communicator> mesh;  // once it is built
};

// What is no longer needed, and may take a while to destroy: its owner lets it go without the session's lock.
using Remains = std::vector<std::shared_ptr<comm::Communicator>>;

}  // namespace

class WorkerSession::State {
 public:
  State(ControlLink& link, comm::PeerAddress data, MeshMaker make_mesh, SessionOptions options)
      : options_(std::move(options)),
        link_(link),
        clock_(Clock::now()),
        builder_(std::move(make_mesh), options_.mesh_deadline,
                 [this](Generation generation, std::unique_ptr<comm::Communicator> mesh, const std::string& failure) {
                   on_mesh(generation, std::move(mesh), failure);
                 }) {
    link_.send(Hello{getpid(), std::move(data), options_.fingerprint});
    heart_ = std::jthread([this](std::stop_token stop) { beat(std::move(stop)); });
  }

  ~State() {
    heart_.request_stop();
    heart_.join();
    if (const auto communicator = communicator_.lock()) communicator->abort();
  }

  void on_message(const ToWorker& message) {
    Remains remains;
    const std::lock_guard lock(mutex_);
    std::visit([&](const auto& kind) { receive(kind, remains); }, message);
    buried_.insert(buried_.end(), remains.begin(), remains.end());
    changed_.notify_all();
  }

  void on_control_lost(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    orphaned_ = reason;
    changed_.notify_all();
  }

  void ask_leave(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    send(AskLeave{reason});
  }

  void leave(Left::How how, const std::string& reason, int job_exit_code) {
    const std::lock_guard lock(mutex_);
    send(Left{how, reason, standing_, job_exit_code});
    silent_ = true;
  }

  void probed(const std::string& hash) {
    const std::lock_guard lock(mutex_);
    probe_ = hash;
  }

  Entry enter(const Standing& standing) {
    std::unique_lock lock(mutex_);
    standing_ = standing;
    set_phase(Phase::holding);
    clock_.start_steps();
    if (!std::exchange(announced_, true)) send(Ready{standing, probe_});
    std::optional<Entry> entry;
    changed_.wait(lock, [&] { return (entry = next_entry()).has_value(); });
    set_phase(Phase::entering);
    send_progress();
    return std::move(*entry);
  }

  void entered(const Standing& standing) {
    const std::lock_guard lock(mutex_);
    standing_ = standing;
    if (!frozen()) send(Entered{current_, standing});
  }

  std::uint64_t vote() {
    const std::lock_guard lock(mutex_);
    if (stop_) return kVoteStop;
    if (orphaned_) return kVoteOrphaned;
    return commit_ && commit_->boundary != Boundary::now ? vote_for(*commit_) : kVoteGoOn;
  }

  Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) {
    const Judgement judgement = judge_votes(votes, at_epoch_end);
    if (judgement.verdict == Verdict::change) {
      const std::lock_guard lock(mutex_);
      agreed_ = judgement.next;
    }
    return judgement.verdict;
  }

  void begin_apply() {
    const std::lock_guard lock(mutex_);
    if (frozen()) throw PeerLost(fmt::format("generation {} ended before this step was applied", current_));
    applying_ = true;
    set_phase(Phase::applying);
  }

  void end_apply(const Standing& standing) {
    const std::lock_guard lock(mutex_);
    DTRAIN_CHECK(applying_, "end_apply() follows begin_apply()");
    applying_ = false;
    standing_ = standing;
    set_phase(Phase::applying);
    clock_.step_done(Clock::now());
    if (const auto generation = std::exchange(freeze_to_answer_, std::nullopt)) send(Frozen{*generation, standing_});
  }

  void lost(const PeerLost& error) {
    const std::lock_guard lock(mutex_);
    if (frozen()) return;  // the coordinator knows more than this error says
    freeze_through(current_, buried_);
    send(Lost{current_, standing_, error.what()});
  }

  void progress(Phase phase) {
    const std::lock_guard lock(mutex_);
    set_phase(phase);
  }

  void report(const Json& event) {
    const std::lock_guard lock(mutex_);
    send(Report{event});
  }

 private:
  // Everything below is called with mutex_ held, but beat() and on_mesh().

  void receive(const Prepare& prepare, Remains& remains) {
    if (prepare.generation <= newest_known()) return;
    drop_unless_committed(remains);
    const auto mine =
        std::ranges::find_if(prepare.members, [&](const Member& member) { return member.worker == options_.worker; });
    const bool member = mine != prepare.members.end();
    prepared_[prepare.generation] = {.member = member, .mesh = nullptr};
    if (!member) return;
    comm::MeshPlan plan{prepare.generation, static_cast<int>(mine - prepare.members.begin()), {}};
    for (const Member& each : prepare.members) plan.ranks.push_back(each.data);
    builder_.build(std::move(plan));
  }

  void receive(const Commit& commit, Remains&) {
    if (commit.generation > std::max(current_, frozen_through_)) commit_ = commit;
  }

  void receive(const Freeze& freeze, Remains& remains) {
    if (freeze.generation < std::max(current_, frozen_through_)) return;
    freeze_through(freeze.generation, remains);
    if (applying_) {
      freeze_to_answer_ = freeze.generation;
    } else {
      send(Frozen{freeze.generation, standing_});
    }
  }

  void receive(const Leave& leave, Remains&) { leave_ = leave.reason; }
  void receive(const Stop& stop, Remains&) { stop_ = stop; }
  void receive(const Lend&, Remains&) {}

  bool frozen() const { return current_ <= frozen_through_; }

  Generation newest_known() const {
    const Generation prepared = prepared_.empty() ? 0 : prepared_.rbegin()->first;
    return std::max({prepared, current_, frozen_through_});
  }

  // A newer plan replaces the older ones, but what is committed may already be agreed upon.
  void drop_unless_committed(Remains& remains) {
    for (auto each = prepared_.begin(); each != prepared_.end();) {
      const bool keep = each->first == agreed_ || (commit_ && each->first == commit_->generation);
      if (!keep && each->second.mesh) remains.push_back(std::move(each->second.mesh));
      each = keep ? std::next(each) : prepared_.erase(each);
    }
  }

  void freeze_through(Generation generation, Remains& remains) {
    frozen_through_ = std::max(frozen_through_, generation);
    if (auto communicator = communicator_.lock()) {
      communicator->abort();
      remains.push_back(std::move(communicator));
    }
    builder_.cancel_through(generation);
    forget_through(generation, remains);
  }

  void forget_through(Generation generation, Remains& remains) {
    while (!prepared_.empty() && prepared_.begin()->first <= generation) {
      if (auto& mesh = prepared_.begin()->second.mesh) remains.push_back(std::move(mesh));
      prepared_.erase(prepared_.begin());
    }
    if (commit_ && commit_->generation <= generation) commit_.reset();
    if (agreed_ <= generation) agreed_ = 0;
  }

  std::optional<Entry> next_entry() {
    if (leave_) return ending(Entry::Kind::leave, *leave_);
    const Generation next = agreed_ != 0                                    ? agreed_
                            : commit_ && commit_->boundary == Boundary::now ? commit_->generation
                                                                            : 0;
    if (const auto found = prepared_.find(next); found != prepared_.end()) {
      if (!found->second.member) return ending(Entry::Kind::leave, "removed from the job");
      if (found->second.mesh) return enter_generation(next, std::move(found->second.mesh));
    }
    if (stop_) return ending(stop_->save ? Entry::Kind::checkpoint : Entry::Kind::stop, stop_->reason);
    if (orphaned_) return ending(Entry::Kind::stop, "the coordinator is gone: " + *orphaned_);
    return std::nullopt;
  }

  static Entry ending(Entry::Kind kind, const std::string& reason) {
    return {.kind = kind, .generation = 0, .communicator = nullptr, .reason = reason};
  }

  Entry enter_generation(Generation generation, std::unique_ptr<comm::Communicator> mesh) {
    const std::shared_ptr<comm::Communicator> shared = std::move(mesh);
    forget_through(generation, buried_);
    current_ = generation;
    communicator_ = shared;
    return {.kind = Entry::Kind::train,
            .generation = generation,
            .communicator = std::make_unique<SharedCommunicator>(shared),
            .reason = {}};
  }

  void on_mesh(Generation generation, std::unique_ptr<comm::Communicator> mesh, const std::string& failure) {
    const std::lock_guard lock(mutex_);
    const auto found = prepared_.find(generation);
    if (found == prepared_.end()) {
      if (mesh) buried_.push_back(std::move(mesh));
      return;
    }
    found->second.mesh = std::move(mesh);
    send(Meshed{generation, failure});
    changed_.notify_all();
  }

  void beat(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      heartbeat_.wait_for(lock, stop, options_.heartbeat, [] { return false; });
      send_progress();
      if (options_.ask_leave_on_signal && stop_signal() != 0 && !std::exchange(signalled_, true)) {
        send(AskLeave{fmt::format("signal {}", stop_signal())});
      }
      Remains remains = std::exchange(buried_, {});
      lock.unlock();
      remains.clear();
      lock.lock();
    }
  }

  void send_progress() {
    send(Progress{.generation = current_,
                  .phase = clock_.phase(),
                  .standing = standing_,
                  .seconds_in_phase = clock_.seconds_in_phase(Clock::now()),
                  .step_seconds = clock_.step_seconds(),
                  .compute_seconds = clock_.compute_seconds()});
  }

  void send(const FromWorker& message) {
    if (!silent_ && !orphaned_) link_.send(message);
  }
  void set_phase(Phase phase) { clock_.enter(phase, Clock::now()); }

  const SessionOptions options_;
  ControlLink& link_;

  std::mutex mutex_;  // guards all that follows, but the threads
  std::condition_variable changed_;
  std::condition_variable_any heartbeat_;  // never notified: a wait that ends at once when the session does

  PhaseClock clock_;
  Standing standing_;
  Generation current_ = 0;                          // last entered; 0: none
  Generation frozen_through_ = 0;                   // it and all older ones are over for this worker
  std::weak_ptr<comm::Communicator> communicator_;  // of current_
  bool applying_ = false;                           // the permit is out
  std::optional<Generation> freeze_to_answer_;      // once the apply in progress ends

  std::map<Generation, Prepared> prepared_;
  std::optional<Commit> commit_;  // newest, of a generation that is not entered
  Generation agreed_ = 0;         // all ranks voted for it
  std::optional<std::string> leave_, orphaned_;
  std::optional<Stop> stop_;
  std::string probe_;
  bool announced_ = false;  // Ready
  bool signalled_ = false;
  bool silent_ = false;
  Remains buried_;

  MeshBuilder builder_;
  std::jthread heart_;
};

WorkerSession::WorkerSession(ControlLink& link, comm::PeerAddress data, MeshMaker make_mesh, SessionOptions options)
    : state_(std::make_unique<State>(link, std::move(data), std::move(make_mesh), std::move(options))) {}

WorkerSession::WorkerSession(ControlLink& link, comm::Endpoint& endpoint, SessionOptions options)
    : WorkerSession(
          link, endpoint.address(),
          [&endpoint](const comm::MeshPlan& plan, std::chrono::milliseconds deadline, std::stop_token cancel) {
            return endpoint.connect(plan, deadline, std::move(cancel));
          },
          std::move(options)) {}

WorkerSession::~WorkerSession() = default;

void WorkerSession::on_message(const ToWorker& message) { state_->on_message(message); }
void WorkerSession::on_control_lost(const std::string& reason) { state_->on_control_lost(reason); }
void WorkerSession::ask_leave(const std::string& reason) { state_->ask_leave(reason); }
void WorkerSession::leave(Left::How how, const std::string& reason, int job_exit_code) {
  state_->leave(how, reason, job_exit_code);
}
void WorkerSession::probed(const std::string& hash) { state_->probed(hash); }
Entry WorkerSession::enter(const Standing& standing) { return state_->enter(standing); }
void WorkerSession::entered(const Standing& standing) { state_->entered(standing); }
std::uint64_t WorkerSession::vote() { return state_->vote(); }
Verdict WorkerSession::judge(std::span<const std::uint64_t> votes, bool at_epoch_end) {
  return state_->judge(votes, at_epoch_end);
}
void WorkerSession::begin_apply() { state_->begin_apply(); }
void WorkerSession::end_apply(const Standing& standing) { state_->end_apply(standing); }
void WorkerSession::lost(const PeerLost& error) { state_->lost(error); }
void WorkerSession::progress(Phase phase) { state_->progress(phase); }
void WorkerSession::report(const Json& event) { state_->report(event); }

}  // namespace dtrain::elastic
