#include "worker_memory.hpp"

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {

WorkerMemory::Kind WorkerMemory::said(WorkerId worker, const std::string& text) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return Kind::other;
  try {
    const FromWorker message = from_worker_from_json(Json::parse(text, "a worker's message"));
    if (const auto* hello = std::get_if<Hello>(&message)) found->second.hello = *hello;
    if (const auto* ready = std::get_if<Ready>(&message)) found->second.ready = *ready;
    if (const auto* progress = std::get_if<Progress>(&message)) found->second.progress = *progress;
    return std::holds_alternative<Progress>(message) ? Kind::heartbeat : Kind::other;
  } catch (const DataError&) {
    return Kind::other;
  }
}

std::vector<WorkerReport> WorkerMemory::reports() const {
  std::vector<WorkerReport> reports;
  for (const auto& [id, worker] : workers_) {
    WorkerReport& report = reports.emplace_back(WorkerReport{.worker = id, .slot = worker.slot, .said = {}});
    if (worker.hello) report.said.emplace_back(*worker.hello);
    if (worker.ready) report.said.emplace_back(*worker.ready);
    if (worker.progress) report.said.emplace_back(*worker.progress);
  }
  return reports;
}

}  // namespace dtrain::elastic
