#include "sim_agent_pool.hpp"

#include <algorithm>
#include <utility>

#include "sim_worker.hpp"

namespace dtrain::world {

using namespace elastic;

SimAgentPool::SimAgentPool(Body body, SimOptions options) : body_(std::move(body)), options_(std::move(options)) {}
SimAgentPool::~SimAgentPool() = default;

std::deque<AgentPoolEvent> SimAgentPool::take_events(std::chrono::milliseconds patience) {
  find_lost_agents();
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

void SimAgentPool::cut_off(const std::string& host) {
  if (up_.erase(host) == 0) return;
  for (const auto& [id, worker] : workers_) {
    if (worker->facts().host == host) worker->stop();
  }
  lost_[host] = std::chrono::steady_clock::now() + options_.agent_silence;
}

void SimAgentPool::find_lost_agents() {
  const auto now = std::chrono::steady_clock::now();
  for (auto each = lost_.begin(); each != lost_.end();) {
    const auto& [host, when] = *each;
    if (now < when) {
      ++each;
      continue;
    }
    for (const auto& [id, worker] : workers_) {
      if (worker->facts().host == host) worker->kill();
    }
    post(HostDown{host, "nothing was heard of its agent"});
    each = lost_.erase(each);
  }
}

void SimAgentPool::start_host(const HostLine& host) {
  if (options_.broken_hosts.contains(host.name)) return post(HostDown{host.name, "connection refused"});
  up_.insert(host.name);
  post(HostUp{host.name, "127.0.0.1"});
}

void SimAgentPool::announce_voters(Generation generation, bool, const std::vector<Member>&) {
  for (const std::string& host : up_) post(HostKnows{host, generation});
}

std::size_t SimAgentPool::answered_since(const std::vector<std::string>& names,
                                         std::chrono::steady_clock::time_point) const {
  return static_cast<std::size_t>(std::ranges::count_if(names, [&](const auto& name) { return up_.contains(name); }));
}

void SimAgentPool::run_admission_check(const std::string& host) { post(AdmissionChecked{host, {}}); }

void SimAgentPool::start_worker(const std::string& host, int, WorkerId worker) {
  workers_[worker] = std::make_unique<SimWorker>(*this, WorkerFacts{worker, host});
  if (lost_.contains(host)) workers_[worker]->stop();
}

void SimAgentPool::send(WorkerId worker, const ToWorker& message) { workers_.at(worker)->receive(message); }

void SimAgentPool::kill_worker(WorkerId worker, bool) { workers_.at(worker)->kill(); }

void SimAgentPool::end_host(const std::string& host) {
  for (const auto& [id, worker] : workers_) {
    if (worker->facts().host == host) worker->kill();
  }
  up_.erase(host);
  if (lost_.erase(host) > 0) return post(HostDown{host, "it was lost before it ended"});
  post(HostDown{host, "ended"});
}

void SimAgentPool::post(AgentPoolEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

}  // namespace dtrain::world
