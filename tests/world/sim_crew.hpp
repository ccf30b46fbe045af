// A crew whose workers are threads of this process, with real sessions and real meshes over loopback. They can be
// killed (nothing of them is heard any more, their connections close), stopped (as by SIGSTOP) and made to hang.
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
#include <dtrain/elastic/crew.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::world {

// Where a worker's trainer or communicator may be told to end: every call of its membership, every point of a
// collective.
enum class Place { enter, entered, vote, judge, begin_apply, end_apply, progress, comm };

enum class Fate { none, die, hang };  // hang: no progress any more, heartbeats go on

struct WorkerFacts {
  elastic::WorkerId worker = 0;
  std::string host;
};
// Asked at every place, from the worker's threads. `count`: how often this worker was at that place before.
using FateOf = std::function<Fate(const WorkerFacts& worker, Place place, comm::CommPoint point, int count)>;

// The trainer of one worker, on its thread. Returns when it is done; throws Error when it failed.
using Body = std::function<elastic::Left::How(elastic::Membership& membership, const WorkerFacts& worker)>;

struct SimOptions {
  std::chrono::milliseconds heartbeat{20};
  std::chrono::milliseconds operation_deadline{20'000};
  std::chrono::milliseconds build_time{0};
  FateOf fate_of;                      // empty: none
  std::set<std::string> broken_hosts;  // their agent does not start
};

class SimWorker;

class SimCrew final : public elastic::Crew {
 public:
  SimCrew(Body body, SimOptions options);
  ~SimCrew() override;  // kills and joins what still runs

  // What happened, waiting for it up to `patience`.
  std::deque<elastic::CrewEvent> take_events(std::chrono::milliseconds patience);

  // Of a person with kill(1). False: there is no such worker any more.
  bool kill(elastic::WorkerId worker);
  bool stop(elastic::WorkerId worker);  // SIGSTOP
  int started() const { return static_cast<int>(workers_.size()); }

  void start_host(const elastic::HostLine& host) override;
  void try_gate(const std::string& host) override;
  void start_worker(const std::string& host, int slot, elastic::WorkerId worker) override;
  void send(elastic::WorkerId worker, const elastic::ToWorker& message) override;
  void kill_worker(elastic::WorkerId worker, bool dump_stack) override;
  void end_host(const std::string& host) override;

 private:
  friend class SimWorker;
  void post(elastic::CrewEvent event);

  const Body body_;
  const SimOptions options_;
  std::mutex mutex_;  // guards events_
  std::condition_variable changed_;
  std::deque<elastic::CrewEvent> events_;
  // Touched by the coordinator's thread alone. Last: their threads use all of the above.
  std::map<elastic::WorkerId, std::unique_ptr<SimWorker>> workers_;
};

}  // namespace dtrain::world
