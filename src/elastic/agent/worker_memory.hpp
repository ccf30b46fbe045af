// What an agent remembers of its workers, for a coordinator that takes over.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/elastic/circle.hpp>

namespace dtrain::elastic {

class WorkerMemory {
 public:
  enum class Kind { heartbeat, other };

  void started(WorkerId worker, int slot) { workers_[worker].slot = slot; }
  // A worker's message on its way to the coordinator. One that means nothing is passed on, too: the coordinator judges.
  Kind said(WorkerId worker, const std::string& message);
  // Its end has arrived at a coordinator.
  void forget(WorkerId worker) { workers_.erase(worker); }
  std::vector<WorkerReport> reports() const;

 private:
  struct Worker {
    int slot = 0;
    std::optional<Hello> hello;
    std::optional<Ready> ready;
    std::optional<Progress> progress;
  };
  std::map<WorkerId, Worker> workers_;
};

}  // namespace dtrain::elastic
