#include "decision_context.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtrain::elastic {

Worker* DecisionContext::find(WorkerId id) {
  const auto found = state.workers.find(id);
  return found == state.workers.end() ? nullptr : &found->second;
}

std::vector<WorkerId> DecisionContext::worker_ids() const {
  std::vector<WorkerId> ids;
  ids.reserve(state.workers.size());
  for (const auto& [id, worker] : state.workers) ids.push_back(id);
  return ids;
}

void DecisionContext::send(std::vector<WorkerId> workers, ToWorker message) {
  if (!workers.empty()) add(Send{std::move(workers), std::move(message)});
}

void DecisionContext::say(std::string text, std::string hint, Say::Kind kind) {
  add(Say{kind, std::move(text), std::move(hint)});
}

void DecisionContext::emit(EventKind kind, Json::Object details) { add(Emit{make_event(kind, std::move(details))}); }

void DecisionContext::emit(EventKind kind, const Worker& worker, Json::Object details) {
  Json::Object all = {{"worker", worker.id}, {"host", worker.host}};
  if (worker.slot != 0) all.emplace_back("slot", worker.slot);
  all.insert(all.end(), details.begin(), details.end());
  emit(kind, std::move(all));
}

void DecisionContext::enter_phase(Worker& worker, WorkerPhase phase) {
  worker.phase = phase;
  worker.since = now;
}

bool DecisionContext::passed(Time since, Duration limit) const {
  return now - std::max(since, state.heard_floor) >= limit;
}

bool is_usable(const Worker& worker) {
  return worker.phase != WorkerPhase::leaving && worker.phase != WorkerPhase::ending;
}

bool is_allotted(const State& state, const Worker& worker) {
  return static_cast<std::size_t>(worker.slot) < state.hosts.at(worker.host).allotted;
}

bool all_frozen(const State& state) { return state.freezing && state.freezing->awaited == 0; }

bool contains(std::span<const WorkerId> ids, WorkerId id) { return std::ranges::find(ids, id) != ids.end(); }

Json seconds_between(const std::optional<Time>& from, const std::optional<Time>& to) {
  if (!from || !to) return 0.0;
  const auto micros = std::chrono::round<std::chrono::microseconds>(*to - *from);
  return static_cast<double>(micros.count()) / 1e6;
}

Json host_names(const State& state, std::span<const WorkerId> workers) {
  Json names = Json::array();
  for (const WorkerId id : workers) {
    const auto found = state.workers.find(id);
    if (found != state.workers.end()) names.push_back(found->second.host);
  }
  return names;
}

Json lines_json(std::span<const std::string> lines) {
  Json json = Json::array();
  for (const std::string& line : lines) json.push_back(line);
  return json;
}

std::string count_of(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string name_of(const Worker& worker) {
  const std::string slot = worker.slot == 0 ? "" : fmt::format(" (slot {})", worker.slot);
  return fmt::format("worker {} on {}{}", worker.id, worker.host, slot);
}

}  // namespace dtrain::elastic
