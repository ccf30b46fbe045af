// Three threads use a session: the trainer's, which calls the Membership functions; the caller of on_message(); and the
// session's own heartbeat thread. A fourth, the mesh builder's, reports connected meshes. mutex_ guards all state; it
// is held only for short computations and for ControlLink::send(), never while a mesh is connected or destroyed.
//
// The fence: frozen_through_ only grows, and begin_apply() checks it under mutex_. A Freeze that comes during an apply
// is answered by end_apply(), so a Frozen message always states a position that stays true.
//
// A communicator belongs to the trainer, through SharedCommunicator; the session keeps a weak pointer to abort it.
// A frozen one goes to frozen_: the session may be its last owner then, and its end can wait for a GPU for seconds. The
// trainer's thread, which has used it, destroys it in enter(), so that no heartbeat waits. Meshes that nobody entered
// go to discarded_; they have computed nothing, and the heartbeat thread destroys them without the lock.
// The destructor stops the heartbeat, aborts the communicator that the trainer may still hold, joins the builder, and
// destroys what is left of both lists.
// After a loss of the coordinator (on_control_lost) nothing is sent any more, and the ranks vote to stop.
#include <dtrain/elastic/session.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include <dtrain/base/mutex.hpp>
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
  std::vector<std::string> hosts{};
  std::unique_ptr<comm::Communicator> mesh;  // set when it is built
};

// Communicators that are no longer needed. Destroying them may take a while, so their owner does it without the lock.
using Discarded = std::vector<std::shared_ptr<comm::Communicator>>;

SessionOptions counting(SessionOptions options, const comm::Endpoint& endpoint) {
  if (!options.traffic) options.traffic = [&endpoint] { return endpoint.traffic(); };
  return options;
}

}  // namespace

class WorkerSession::Impl {
 public:
  Impl(ControlLink& link, comm::PeerAddress data, MeshMaker make_mesh, SessionOptions options)
      : options_(std::move(options)),
        link_(link),
        clock_(Clock::now()),
        builder_(std::move(make_mesh), options_.mesh_deadline,
                 [this](Generation generation, MeshBuilder::Result made) { on_mesh(generation, std::move(made)); }) {
    link_.send(Hello{getpid(), std::move(data), options_.fingerprint});
    heart_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
  }

  ~Impl() {
    heart_.request_stop();
    heart_.join();
    if (const auto communicator = communicator_.lock()) communicator->abort();
  }

  void on_message(const ToWorker& message) {
    const MutexLock lock(mutex_);
    std::visit([&](const auto& kind) DTRAIN_REQUIRES(mutex_) { receive(kind); }, message);
    changed_.notify_all();
  }

  void on_control_lost(const std::string& reason) {
    const MutexLock lock(mutex_);
    coordinator_lost_ = reason;
    changed_.notify_all();
  }

  void ask_leave(const std::string& reason) {
    const MutexLock lock(mutex_);
    send(AskLeave{reason});
  }

  void leave(Left::How how, const std::string& reason, const JobFailure& of_job) {
    const MutexLock lock(mutex_);
    send_progress();  // the steps and bytes since the last heartbeat count too
    send(Left{how, reason, position_, of_job.exit_code, {}, of_job.hint});
    silent_ = true;
  }

  void probed(const std::string& hash) {
    const MutexLock lock(mutex_);
    probe_ = hash;
  }

  Entry enter(const TrainingPosition& position) {
    hold_at(position);
    const MutexLock lock(mutex_);
    clock_.start_steps();
    if (!std::exchange(announced_, true)) send(Ready{position, probe_});
    std::optional<Entry> entry;
    while (!(entry = next_entry())) changed_.wait(mutex_);
    set_phase(Phase::entering);
    send_progress();
    return std::move(*entry);
  }

  void entered(const TrainingPosition& position) {
    const MutexLock lock(mutex_);
    position_ = position;
    if (!frozen()) send(Entered{current_, position});
  }

  std::uint64_t vote() {
    const MutexLock lock(mutex_);
    if (stop_) return kVoteStop;
    if (coordinator_lost_) return kVoteCoordinatorLost;
    return commit_ && commit_->boundary != Boundary::now ? vote_for(*commit_) : kVoteGoOn;
  }

  Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) {
    const Judgement judgement = judge_votes(votes, at_epoch_end);
    if (judgement.verdict == Verdict::change) {
      const MutexLock lock(mutex_);
      if (judgement.next > frozen_through_) agreed_ = judgement.next;  // a Freeze may have come during the apply
    }
    return judgement.verdict;
  }

  void require_generation() {
    const MutexLock lock(mutex_);
    require_thawed();
  }

  void begin_apply() {
    const MutexLock lock(mutex_);
    require_thawed();
    applying_ = true;
    set_phase(Phase::applying);
  }

  void end_apply(const TrainingPosition& position) {
    const MutexLock lock(mutex_);
    DTRAIN_CHECK(applying_, "end_apply() follows begin_apply()");
    applying_ = false;
    position_ = position;
    set_phase(Phase::applying);
    clock_.step_done(Clock::now());
    if (const auto generation = std::exchange(freeze_to_answer_, std::nullopt)) send(Frozen{*generation, position_});
  }

  void lost(const PeerLost& error) {
    const MutexLock lock(mutex_);
    if (frozen()) return;  // the coordinator has ended the generation already
    freeze_through(current_);
    send(Lost{current_, position_, error.what()});
  }

  void progress(Phase phase) {
    const MutexLock lock(mutex_);
    set_phase(phase);
  }

  void computes(double share) {
    const MutexLock lock(mutex_);
    share_ = share;
  }

  void report(const Json& event) {
    const MutexLock lock(mutex_);
    send(Report{event});
  }

 private:
  void hold_at(const TrainingPosition& position) {
    Discarded frozen;  // destroyed after the mutex is free
    const MutexLock lock(mutex_);
    position_ = position;
    set_phase(Phase::holding);
    frozen.swap(frozen_);
  }

  void receive(const Prepare& prepare) DTRAIN_REQUIRES(mutex_) {
    if (prepare.generation <= newest_known()) return;
    drop_unless_committed();
    const auto mine =
        std::ranges::find_if(prepare.members, [&](const Member& member) { return member.worker == options_.worker; });
    const bool member = mine != prepare.members.end();
    prepared_[prepare.generation] = {.member = member, .hosts = hosts_of(prepare.members), .mesh = nullptr};
    if (!member) return;
    comm::MeshPlan plan{prepare.generation, static_cast<int>(mine - prepare.members.begin()), {}};
    for (const Member& each : prepare.members) plan.ranks.push_back(each.data);
    builder_.build(std::move(plan));
  }

  void receive(const Commit& commit) DTRAIN_REQUIRES(mutex_) {
    if (commit.generation > std::max(current_, frozen_through_)) commit_ = commit;
  }

  void receive(const Freeze& freeze) DTRAIN_REQUIRES(mutex_) {
    if (freeze.generation < std::max(current_, frozen_through_)) return;
    freeze_through(freeze.generation);
    if (applying_) {
      freeze_to_answer_ = freeze.generation;
    } else {
      send(Frozen{freeze.generation, position_});
    }
  }

  void receive(const Leave& leave) DTRAIN_REQUIRES(mutex_) { leave_ = leave.reason; }
  void receive(const Stop& stop) DTRAIN_REQUIRES(mutex_) { stop_ = stop; }
  void receive(const UpdateCredentials&) {}

  bool frozen() const DTRAIN_REQUIRES(mutex_) { return current_ <= frozen_through_; }

  Generation newest_known() const DTRAIN_REQUIRES(mutex_) {
    const Generation prepared = prepared_.empty() ? 0 : prepared_.rbegin()->first;
    return std::max({prepared, current_, frozen_through_});
  }

  // A newer plan replaces older ones, except a committed one, on which the ranks may have agreed already.
  void drop_unless_committed() DTRAIN_REQUIRES(mutex_) {
    for (auto each = prepared_.begin(); each != prepared_.end();) {
      const bool keep = each->first == agreed_ || (commit_ && each->first == commit_->generation);
      if (!keep && each->second.mesh) discarded_.push_back(std::move(each->second.mesh));
      each = keep ? std::next(each) : prepared_.erase(each);
    }
  }

  void freeze_through(Generation generation) DTRAIN_REQUIRES(mutex_) {
    frozen_through_ = std::max(frozen_through_, generation);
    if (auto communicator = communicator_.lock()) {
      communicator->abort();
      communicator_.reset();  // from now on frozen_ and the trainer alone own it
      frozen_.push_back(std::move(communicator));
    }
    builder_.cancel_through(generation);
    forget_through(generation);
  }

  void forget_through(Generation generation) DTRAIN_REQUIRES(mutex_) {
    while (!prepared_.empty() && prepared_.begin()->first <= generation) {
      if (auto& mesh = prepared_.begin()->second.mesh) discarded_.push_back(std::move(mesh));
      prepared_.erase(prepared_.begin());
    }
    if (commit_ && commit_->generation <= generation) commit_.reset();
    if (agreed_ <= generation) agreed_ = 0;
  }

  std::optional<Entry> next_entry() DTRAIN_REQUIRES(mutex_) {
    if (leave_) return ending(Entry::Kind::leave, *leave_);
    const Generation next = agreed_ != 0                                    ? agreed_
                            : commit_ && commit_->boundary == Boundary::now ? commit_->generation
                                                                            : 0;
    if (const auto found = prepared_.find(next); found != prepared_.end()) {
      if (!found->second.member) return ending(Entry::Kind::leave, "removed from the job");
      if (found->second.mesh) return enter_generation(next, std::move(found->second));
    }
    if (stop_) return ending(stop_->save ? Entry::Kind::checkpoint : Entry::Kind::stop, stop_->reason);
    if (coordinator_lost_) return ending(Entry::Kind::stop, "the coordinator is gone: " + *coordinator_lost_);
    return std::nullopt;
  }

  static Entry ending(Entry::Kind kind, const std::string& reason) {
    return {.kind = kind, .generation = 0, .communicator = nullptr, .reason = reason};
  }

  Entry enter_generation(Generation generation, Prepared prepared) DTRAIN_REQUIRES(mutex_) {
    const std::shared_ptr<comm::Communicator> shared = std::move(prepared.mesh);
    forget_through(generation);
    current_ = generation;
    communicator_ = shared;
    return {.kind = Entry::Kind::train,
            .generation = generation,
            .communicator = std::make_unique<SharedCommunicator>(shared),
            .hosts = std::move(prepared.hosts)};
  }

  void on_mesh(Generation generation, MeshBuilder::Result made) {
    const MutexLock lock(mutex_);
    const auto found = prepared_.find(generation);
    if (found == prepared_.end()) {
      if (made.mesh) discarded_.push_back(std::move(made.mesh));
      return;
    }
    found->second.mesh = std::move(made.mesh);
    send(Meshed{generation, made.failure, made.is_local});
    changed_.notify_all();
  }

  void beat(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      sleep_unless_stopped(stop, options_.heartbeat);
      Discarded discarded;  // destroyed after the mutex is free
      const MutexLock lock(mutex_);
      send_progress();
      if (options_.ask_leave_on_signal && stop_signal() != 0 && !std::exchange(signalled_, true)) {
        send(AskLeave{fmt::format("signal {}", stop_signal())});
      }
      discarded.swap(discarded_);
    }
  }

  void send_progress() DTRAIN_REQUIRES(mutex_) {
    send(Progress{.generation = current_,
                  .phase = clock_.phase(),
                  .position = position_,
                  .seconds_in_phase = clock_.seconds_in_phase(Clock::now()),
                  .step_seconds = clock_.step_seconds(),
                  .compute_seconds = clock_.compute_seconds(),
                  .share = share_,
                  .traffic = traffic()});
  }

  comm::Traffic traffic() const {
    return options_.traffic ? options_.traffic().value_or(comm::Traffic()) : comm::Traffic();
  }

  void send(const FromWorker& message) DTRAIN_REQUIRES(mutex_) {
    if (!silent_ && !coordinator_lost_) link_.send(message);
  }
  void require_thawed() const DTRAIN_REQUIRES(mutex_) {
    if (frozen()) throw PeerLost(fmt::format("generation {} ended before this step was applied", current_));
  }
  void set_phase(Phase phase) DTRAIN_REQUIRES(mutex_) { clock_.enter(phase, Clock::now()); }

  const SessionOptions options_;
  ControlLink& link_;

  Mutex mutex_;
  CondVar changed_;

  PhaseClock clock_ DTRAIN_GUARDED_BY(mutex_);
  double share_ DTRAIN_GUARDED_BY(mutex_) = 0;  // 0: not known
  TrainingPosition position_ DTRAIN_GUARDED_BY(mutex_);
  Generation current_ DTRAIN_GUARDED_BY(mutex_) = 0;  // last entered; 0: none
  // This generation and all older ones are over for this worker.
  Generation frozen_through_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<comm::Communicator> communicator_ DTRAIN_GUARDED_BY(mutex_);  // of current_
  bool applying_ DTRAIN_GUARDED_BY(mutex_) = false;                           // between begin_apply() and end_apply()
  std::optional<Generation> freeze_to_answer_ DTRAIN_GUARDED_BY(mutex_);      // to be answered by end_apply()

  std::map<Generation, Prepared> prepared_ DTRAIN_GUARDED_BY(mutex_);
  std::optional<Commit> commit_ DTRAIN_GUARDED_BY(mutex_);  // newest, for a generation that is not entered
  Generation agreed_ DTRAIN_GUARDED_BY(mutex_) = 0;         // all ranks voted for it; 0: none
  std::optional<std::string> leave_ DTRAIN_GUARDED_BY(mutex_);
  std::optional<std::string> coordinator_lost_ DTRAIN_GUARDED_BY(mutex_);
  std::optional<Stop> stop_ DTRAIN_GUARDED_BY(mutex_);
  std::string probe_ DTRAIN_GUARDED_BY(mutex_);
  bool announced_ DTRAIN_GUARDED_BY(mutex_) = false;  // Ready was sent
  bool signalled_ DTRAIN_GUARDED_BY(mutex_) = false;
  bool silent_ DTRAIN_GUARDED_BY(mutex_) = false;
  Discarded frozen_ DTRAIN_GUARDED_BY(mutex_), discarded_ DTRAIN_GUARDED_BY(mutex_);

  MeshBuilder builder_;
  std::jthread heart_;
};

WorkerSession::WorkerSession(ControlLink& link, comm::PeerAddress data, MeshMaker make_mesh, SessionOptions options)
    : impl_(std::make_unique<Impl>(link, std::move(data), std::move(make_mesh), std::move(options))) {}

WorkerSession::WorkerSession(ControlLink& link, comm::Endpoint& endpoint, SessionOptions options)
    : WorkerSession(
          link, endpoint.address(),
          [&endpoint](const comm::MeshPlan& plan, std::chrono::milliseconds deadline, std::stop_token cancel) {
            return endpoint.connect(plan, deadline, std::move(cancel));
          },
          counting(std::move(options), endpoint)) {}

WorkerSession::~WorkerSession() = default;

void WorkerSession::on_message(const ToWorker& message) { impl_->on_message(message); }
void WorkerSession::on_control_lost(const std::string& reason) { impl_->on_control_lost(reason); }
void WorkerSession::ask_leave(const std::string& reason) { impl_->ask_leave(reason); }
void WorkerSession::leave(Left::How how, const std::string& reason, const JobFailure& of_job) {
  impl_->leave(how, reason, of_job);
}
void WorkerSession::probed(const std::string& hash) { impl_->probed(hash); }
Entry WorkerSession::enter(const TrainingPosition& position) { return impl_->enter(position); }
void WorkerSession::entered(const TrainingPosition& position) { impl_->entered(position); }
std::uint64_t WorkerSession::vote() { return impl_->vote(); }
Verdict WorkerSession::judge(std::span<const std::uint64_t> votes, bool at_epoch_end) {
  return impl_->judge(votes, at_epoch_end);
}
void WorkerSession::require_generation() { impl_->require_generation(); }
void WorkerSession::begin_apply() { impl_->begin_apply(); }
void WorkerSession::end_apply(const TrainingPosition& position) { impl_->end_apply(position); }
void WorkerSession::lost(const PeerLost& error) { impl_->lost(error); }
void WorkerSession::progress(Phase phase) { impl_->progress(phase); }
void WorkerSession::computes(double share) { impl_->computes(share); }
void WorkerSession::report(const Json& event) { impl_->report(event); }

}  // namespace dtrain::elastic
