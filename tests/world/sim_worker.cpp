#include "sim_worker.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

#include "elastic/session/shared_communicator.hpp"

namespace dtrain::world {
namespace {

using namespace elastic;

// The worker's membership, with a place to die at before and after everything that matters.
class MortalMembership final : public Membership {
 public:
  MortalMembership(Membership& inner, SimWorker& worker) : inner_(inner), worker_(worker) {}

  Entry enter(const Standing& standing) override {
    worker_.pass(Place::enter);
    Entry entry = inner_.enter(standing);
    if (entry.communicator) {
      const std::shared_ptr<comm::Communicator> shared = std::move(entry.communicator);
      entry.communicator = std::make_unique<SharedCommunicator>(shared);
      worker_.hold(shared);
    }
    worker_.pass(Place::enter);
    return entry;
  }
  void entered(const Standing& standing) override {
    worker_.pass(Place::entered);
    inner_.entered(standing);
    worker_.pass(Place::entered);
  }
  std::uint64_t vote() override {
    worker_.pass(Place::vote);
    return inner_.vote();
  }
  Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) override {
    worker_.pass(Place::judge);
    return inner_.judge(votes, at_epoch_end);
  }
  void begin_apply() override {
    worker_.pass(Place::begin_apply);
    inner_.begin_apply();
  }
  void end_apply(const Standing& standing) override {
    inner_.end_apply(standing);
    worker_.pass(Place::end_apply);
  }
  void lost(const PeerLost& error) override {
    worker_.pass(Place::progress);
    inner_.lost(error);
  }
  void progress(Phase phase) override {
    inner_.progress(phase);
    worker_.pass(Place::progress);
  }
  void report(const Json& event) override { inner_.report(event); }

 private:
  Membership& inner_;
  SimWorker& worker_;
};

}  // namespace

SimWorker::SimWorker(SimCrew& crew, WorkerFacts facts)
    : crew_(crew), facts_(std::move(facts)), thread_([this] { run(); }) {}

SimWorker::~SimWorker() {
  kill();
  thread_.join();
}

void SimWorker::receive(const ToWorker& message) {
  const std::lock_guard lock(mutex_);
  if (dead_ || stopped_) return;
  if (session_) {
    session_->on_message(message);
  } else {
    early_.push_back(message);
  }
}

void SimWorker::kill() {
  const std::lock_guard lock(mutex_);
  dead_ = true;
  if (session_) session_->on_control_lost("killed");
  if (const auto communicator = communicator_.lock()) communicator->abort();
  changed_.notify_all();
}

void SimWorker::stop() { stopped_ = true; }

void SimWorker::pass(Place place, comm::CommPoint point) {
  if (dead_) throw SimDeath();
  const int count = passed_[static_cast<std::size_t>(place)]++;
  const Fate fate = crew_.options_.fate_of ? crew_.options_.fate_of(facts_, place, point, count) : Fate::none;
  if (fate == Fate::die) {
    dead_ = true;  // the trainer unwinds and takes everything with it, at the latest at its next place
    throw SimDeath();
  }
  if (fate == Fate::hang || stopped_) wait_for_death();
}

void SimWorker::wait_for_death() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return dead_.load(); });
  throw SimDeath();
}

void SimWorker::hold(std::weak_ptr<comm::Communicator> communicator) {
  const std::lock_guard lock(mutex_);
  communicator_ = std::move(communicator);
}

void SimWorker::send(const FromWorker& message) {
  if (!dead_ && !stopped_) crew_.post(WorkerSays{facts_.worker, message});
}

void SimWorker::run() {
  WorkerExited exited{.worker = facts_.worker, .exit_code = 0, .signal = 0, .last_lines = {}};
  try {
    live();
  } catch (const SimDeath&) {
    exited.signal = 9;
  } catch (const Error& error) {
    exited.exit_code = 1;
    exited.last_lines = {error.what()};
  }
  if (dead_) exited = {.worker = facts_.worker, .exit_code = 0, .signal = 9, .last_lines = {}};
  gone_ = true;
  crew_.post(std::move(exited));
}

Left::How SimWorker::live() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, crew_.options_.build_time, [this] { return dead_.load(); });
  }
  pass(Place::progress);
  comm::Endpoint endpoint({.bind_address = "127.0.0.1",
                           .secret = "the job's token",
                           .transport = comm::Transport::tcp,
                           .operation_deadline = crew_.options_.operation_deadline,
                           .on_point = [this](comm::CommPoint point) { pass(Place::comm, point); }});
  WorkerSession session(*this, endpoint,
                        {.worker = facts_.worker,
                         .fingerprint = "the same",
                         .heartbeat = crew_.options_.heartbeat,
                         .mesh_deadline = crew_.options_.operation_deadline,
                         .ask_leave_on_signal = false});
  struct Known {  // by the coordinator's thread, as long as it lives
    SimWorker& worker;
    Known(SimWorker& self, WorkerSession& session) : worker(self) {
      const std::lock_guard lock(worker.mutex_);
      worker.session_ = &session;
      for (const ToWorker& message : std::exchange(worker.early_, {})) session.on_message(message);
      if (worker.dead_) session.on_control_lost("killed");
    }
    ~Known() {
      const std::lock_guard lock(worker.mutex_);
      worker.session_ = nullptr;
    }
  } known(*this, session);
  MortalMembership membership(session, *this);
  const Left::How how = crew_.body_(membership, facts_);
  session.leave(how, "");
  return how;
}

}  // namespace dtrain::world
