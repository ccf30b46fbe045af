// The last messages of each worker, which the agent reports to a coordinator that takes over.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/elastic/voters.hpp>

namespace dtrain::elastic {

class WorkerMemory {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Kind { heartbeat, failure, other };

  void started(WorkerId worker, int slot, Time now) {
    workers_[worker].slot = slot;
    workers_[worker].heard = now;
  }
  // Records a worker's message on its way to the coordinator. Invalid ones pass too: the coordinator handles them.
  Kind said(WorkerId worker, const std::string& message, Time now);
  // A coordinator knows the end of the worker.
  void forget(WorkerId worker) { workers_.erase(worker); }
  std::vector<WorkerReport> reports(Time now) const;

 private:
  struct Worker {
    int slot = 0;
    Time heard{};
    std::optional<Hello> hello;
    std::optional<Ready> ready;
    std::optional<Progress> progress;
  };
  std::map<WorkerId, Worker> workers_;
};

// A worker's message of Kind::failure with the last lines of its output.
std::string with_last_lines(const std::string& message, const std::vector<std::string>& lines);

}  // namespace dtrain::elastic
