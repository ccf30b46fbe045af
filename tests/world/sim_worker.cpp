#include "sim_worker.hpp"

#include <utility>

#include <dtrain/base/error.hpp>

#include "elastic/session/shared_communicator.hpp"

namespace dtrain::world {
namespace {

using namespace elastic;

// The worker's membership, with a place for a fault before and after every call that matters.
class FaultyMembership final : public Membership {
 public:
  FaultyMembership(Membership& inner, SimWorker& worker) : inner_(inner), worker_(worker) {}

  void probed(const std::string& hash) override { inner_.probed(hash); }
  Entry enter(const TrainingPosition& position) override {
    worker_.pass(Place::enter);
    Entry entry = inner_.enter(position);
    if (entry.communicator) {
      const std::shared_ptr<comm::Communicator> shared = std::move(entry.communicator);
      entry.communicator = std::make_unique<SharedCommunicator>(shared);
      worker_.hold(shared);
    }
    worker_.pass(Place::enter);
    return entry;
  }
  void entered(const TrainingPosition& position) override {
    worker_.pass(Place::entered);
    inner_.entered(position);
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
  void require_generation() override { inner_.require_generation(); }
  void begin_apply() override {
    worker_.pass(Place::begin_apply);
    inner_.begin_apply();
  }
  void end_apply(const TrainingPosition& position) override {
    inner_.end_apply(position);
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
  void computes(double share) override { inner_.computes(share); }
  void report(const Json& event) override { inner_.report(event); }

 private:
  Membership& inner_;
  SimWorker& worker_;
};

}  // namespace

SimWorker::SimWorker(SimAgentPool& agent_pool, WorkerFacts facts)
    : agent_pool_(agent_pool), facts_(std::move(facts)), thread_([this] { run(); }) {}

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
  const Fault fault =
      agent_pool_.options_.fault_at ? agent_pool_.options_.fault_at(facts_, place, point, count) : Fault::none;
  if (fault == Fault::die) {
    dead_ = true;  // the trainer unwinds and takes everything with it, at the latest at its next place
    throw SimDeath();
  }
  if (fault == Fault::hang || stopped_) wait_for_death();
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
  if (!dead_ && !stopped_) agent_pool_.post(WorkerSays{facts_.worker, message});
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
  agent_pool_.post(std::move(exited));
}

Left::How SimWorker::live() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, agent_pool_.options_.build_time, [this] { return dead_.load(); });
  }
  pass(Place::progress);
  comm::Endpoint endpoint({.bind_address = "127.0.0.1",
                           .secret = "the job's token",
                           .transport = comm::Transport::tcp,
                           .operation_deadline = agent_pool_.options_.operation_deadline,
                           .on_point = [this](comm::CommPoint point) { pass(Place::comm, point); }});
  WorkerSession session(*this, endpoint,
                        {.worker = facts_.worker,
                         .fingerprint = "the same",
                         .heartbeat = agent_pool_.options_.heartbeat,
                         .mesh_deadline = agent_pool_.options_.operation_deadline,
                         .ask_leave_on_signal = false});
  struct Known {  // visible to the coordinator's thread while it lives
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
  FaultyMembership membership(session, *this);
  const Left::How how = agent_pool_.body_(membership, facts_);
  session.leave(how, "");
  return how;
}

}  // namespace dtrain::world
