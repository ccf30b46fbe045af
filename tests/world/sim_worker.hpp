// One worker process, simulated by a thread.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <thread>

#include <dtrain/elastic/session.hpp>

#include "sim_agent_pool.hpp"

namespace dtrain::world {

// Unwinds the trainer of a killed worker. Not a dtrain::Error, so that no handler takes it for a failure.
struct SimDeath final : std::exception {
  const char* what() const noexcept override { return "this worker was killed"; }
};

class SimWorker final : private elastic::ControlLink {
 public:
  SimWorker(SimAgentPool& agent_pool, WorkerFacts facts);
  ~SimWorker() override;  // kills and joins

  void receive(const elastic::ToWorker& message);
  void kill();
  void stop();
  bool gone() const { return gone_; }
  const WorkerFacts& facts() const { return facts_; }

  // From the worker's own threads. Throws SimDeath once it is dead; does not return while it hangs.
  void pass(Place place, comm::CommPoint point = {});
  void hold(std::weak_ptr<comm::Communicator> communicator);

 private:
  void run();
  elastic::Left::How live();
  void send(const elastic::FromWorker& message) override;
  void wait_for_death();

  SimAgentPool& agent_pool_;
  const WorkerFacts facts_;
  std::array<std::atomic<int>, 8> passed_{};  // by Place
  std::atomic<bool> dead_ = false, stopped_ = false, gone_ = false;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  elastic::WorkerSession* session_ = nullptr;
  std::deque<elastic::ToWorker> early_;  // came before the session was there
  std::weak_ptr<comm::Communicator> communicator_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace dtrain::world
