// An agent pool whose workers are threads of this process, with real sessions and real meshes over loopback. They can
// be killed (no message of them arrives any more, their connections close), stopped (as by SIGSTOP) and made to hang.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::world {

// Where a fault may strike a worker: every call of its membership, every point of a collective.
enum class Place { enter, entered, vote, judge, begin_apply, end_apply, progress, comm };

enum class Fault { none, die, hang };  // hang: no more progress, but heartbeats

struct WorkerFacts {
  elastic::WorkerId worker = 0;
  std::string host;
};
// Called at every place, from the worker's threads. `count`: earlier passes of this worker at that place.
using FaultAt = std::function<Fault(const WorkerFacts& worker, Place place, comm::CommPoint point, int count)>;

// The trainer of one worker, on its thread. Returns when the worker is done; throws Error when it failed.
using Body = std::function<elastic::Left::How(elastic::Membership& membership, const WorkerFacts& worker)>;

struct SimOptions {
  std::chrono::milliseconds heartbeat{20};
  std::chrono::milliseconds operation_deadline{20'000};
  std::chrono::milliseconds build_time{0};
  FaultAt fault_at;                            // empty: none
  std::set<std::string> broken_hosts;          // hosts whose agent does not start
  std::chrono::milliseconds agent_silence{0};  // from cut_off() of a host until its agent counts as lost
};

class SimWorker;

class SimAgentPool final : public elastic::AgentPool {
 public:
  SimAgentPool(Body body, SimOptions options);
  ~SimAgentPool() override;  // kills and joins what still runs

  // The events so far; waits up to `patience` for the first one.
  std::deque<elastic::AgentPoolEvent> take_events(std::chrono::milliseconds patience);

  // What kill(1) by a user does. False: there is no such worker any more.
  bool kill(elastic::WorkerId worker);
  bool stop(elastic::WorkerId worker);  // SIGSTOP
  // Nothing comes from the host any more: neither its workers nor its agent. Its next start is a new machine.
  void cut_off(const std::string& host);
  int started() const { return static_cast<int>(workers_.size()); }

  void start_host(const elastic::HostLine& host) override;
  void run_admission_check(const std::string& host) override;
  void start_worker(const std::string& host, int slot, elastic::WorkerId worker) override;
  void send(elastic::WorkerId worker, const elastic::ToWorker& message) override;
  void send_all(const std::vector<elastic::WorkerId>& workers, const elastic::ToWorker& message) override {
    for (const elastic::WorkerId worker : workers) send(worker, message);
  }
  void kill_worker(elastic::WorkerId worker, bool dump_stack) override;
  void end_host(const std::string& host) override;
  void announce_voters(elastic::Generation generation, bool committed,
                       const std::vector<elastic::Member>& members) override;
  std::size_t answered_since(const std::vector<std::string>& names,
                             std::chrono::steady_clock::time_point since) const override;

 private:
  friend class SimWorker;
  void post(elastic::AgentPoolEvent event);
  void find_lost_agents();

  const Body body_;
  const SimOptions options_;
  std::mutex mutex_;  // guards events_
  std::condition_variable changed_;
  std::deque<elastic::AgentPoolEvent> events_;
  // What follows is used by the coordinator's thread only.
  std::set<std::string> up_;                                           // hosts whose agent answers
  std::map<std::string, std::chrono::steady_clock::time_point> lost_;  // hosts that are cut off, and when that shows
  // Last: their threads use all of the above.
  std::map<elastic::WorkerId, std::unique_ptr<SimWorker>> workers_;
};

}  // namespace dtrain::world
