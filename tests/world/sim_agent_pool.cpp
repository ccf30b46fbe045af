#include "sim_agent_pool.hpp"

#include <utility>

#include "sim_worker.hpp"

namespace dtrain::world {

using namespace elastic;

SimAgentPool::SimAgentPool(Body body, SimOptions options) : body_(std::move(body)), options_(std::move(options)) {}
SimAgentPool::~SimAgentPool() = default;

std::deque<AgentPoolEvent> SimAgentPool::take_events(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return !events_.empty(); });
  return std::exchange(events_, {});
}

bool SimAgentPool::kill(WorkerId worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second->gone()) return false;
  found->second->kill();
  return true;
}

bool SimAgentPool::stop(WorkerId worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second->gone()) return false;
  found->second->stop();
  return true;
}

void SimAgentPool::start_host(const HostLine& host) {
  if (options_.broken_hosts.contains(host.name)) {
    post(HostDown{host.name, "connection refused"});
  } else {
    post(HostUp{host.name, "127.0.0.1"});
  }
}

void SimAgentPool::run_admission_check(const std::string& host) { post(AdmissionChecked{host, {}}); }

void SimAgentPool::start_worker(const std::string& host, int, WorkerId worker) {
  workers_[worker] = std::make_unique<SimWorker>(*this, WorkerFacts{worker, host});
}

void SimAgentPool::send(WorkerId worker, const ToWorker& message) { workers_.at(worker)->receive(message); }

void SimAgentPool::kill_worker(WorkerId worker, bool) { workers_.at(worker)->kill(); }

void SimAgentPool::end_host(const std::string& host) {
  for (const auto& [id, worker] : workers_) {
    if (worker->facts().host == host) worker->kill();
  }
  post(HostDown{host, "ended"});
}

void SimAgentPool::post(AgentPoolEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

}  // namespace dtrain::world
