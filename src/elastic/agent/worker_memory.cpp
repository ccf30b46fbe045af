#include "worker_memory.hpp"

#include <dtrain/base/error.hpp>

namespace dtrain::elastic {
namespace {

FromWorker parse(const std::string& text) { return from_worker_from_json(Json::parse(text, "a worker's message")); }

// A report that has lines: a worker leaves them empty, because its agent reads its output.
bool has_lines(const Report& report) { return report.event.is_object() && report.event.find("last_lines"); }

WorkerMemory::Kind kind_of(const FromWorker& message) {
  if (std::holds_alternative<Progress>(message)) return WorkerMemory::Kind::heartbeat;
  const auto* left = std::get_if<Left>(&message);
  const auto* report = std::get_if<Report>(&message);
  const bool failed = (left && left->how == Left::How::failed) || (report && has_lines(*report));
  return failed ? WorkerMemory::Kind::failure : WorkerMemory::Kind::other;
}

}  // namespace

WorkerMemory::Kind WorkerMemory::said(WorkerId worker, const std::string& text, Time now) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return Kind::other;
  found->second.heard = now;
  try {
    const FromWorker message = parse(text);
    if (const auto* hello = std::get_if<Hello>(&message)) found->second.hello = *hello;
    if (const auto* ready = std::get_if<Ready>(&message)) found->second.ready = *ready;
    if (const auto* progress = std::get_if<Progress>(&message)) found->second.progress = *progress;
    return kind_of(message);
  } catch (const DataError&) {
    return Kind::other;
  }
}

std::string with_last_lines(const std::string& message, const std::vector<std::string>& lines) {
  FromWorker whole = parse(message);
  if (auto* left = std::get_if<Left>(&whole)) left->last_lines = lines;
  if (auto* report = std::get_if<Report>(&whole)) {
    Json& texts = report->event["last_lines"] = Json::array();
    for (const std::string& line : lines) texts.push_back(line);
  }
  return to_json(whole).dump();
}

std::vector<WorkerReport> WorkerMemory::reports(Time now) const {
  std::vector<WorkerReport> reports;
  for (const auto& [id, worker] : workers_) {
    const auto silence = std::chrono::duration_cast<std::chrono::milliseconds>(now - worker.heard);
    WorkerReport& report =
        reports.emplace_back(WorkerReport{.worker = id, .slot = worker.slot, .silence = silence, .said = {}});
    if (worker.hello) report.said.emplace_back(*worker.hello);
    if (worker.ready) report.said.emplace_back(*worker.ready);
    if (worker.progress) report.said.emplace_back(*worker.progress);
  }
  return reports;
}

}  // namespace dtrain::elastic
