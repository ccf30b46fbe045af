// One call of decide() in progress. The functions of this folder take a DecisionContext, change its state and add
// actions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/base/event_kind.hpp>

#include "decide.hpp"

namespace dtrain::elastic {

struct DecisionContext {
  State& state;
  std::vector<Action>& actions;
  const Time now;
  bool settle = false;  // check hosts, processes and generations at the end; not after a heartbeat

  Worker* find(WorkerId id);
  Host& host_of(const Worker& worker) { return state.hosts.at(worker.host); }
  std::vector<WorkerId> worker_ids() const;

  void add(Action action) { actions.push_back(std::move(action)); }
  void send(WorkerId worker, ToWorker message) { add(Send{{worker}, std::move(message)}); }
  void send(std::vector<WorkerId> workers, ToWorker message);  // nothing when there are none
  void say(std::string text, std::string hint = {}, Say::Kind kind = Say::Kind::note);
  // An event that names a worker also names its host.
  void emit(EventKind kind, Json::Object details);
  void emit(EventKind kind, const Worker& worker, Json::Object details = {});
  void enter_phase(Worker& worker, WorkerPhase phase);

  // Does not count time during which the coordinator itself was held up.
  bool passed(Time since, Duration limit) const;
};

// Members of the current generation train, or are frozen, together; other workers wait.
inline bool is_member(const Worker& worker) { return worker.phase == WorkerPhase::member; }
// The process is a member or may become one.
bool is_usable(const Worker& worker);
// The slot may be used: its host is wanted and max_workers is not exceeded.
bool is_allotted(const State& state, const Worker& worker);
// All members of the ending generation are frozen, so the next one can begin at once.
bool all_frozen(const State& state);
bool contains(std::span<const WorkerId> ids, WorkerId id);
Json seconds_between(const std::optional<Time>& from, const std::optional<Time>& to);
Json host_names(const State& state, std::span<const WorkerId> workers);
Json lines_json(std::span<const std::string> lines);
std::string count_of(std::size_t number, std::string_view noun);  // "1 worker", "2 workers"
std::string name_of(const Worker& worker);                        // "worker 3 on w2"

// What lets a spare train. Whether the workers share steps, and in how many shards, only the job knows.
inline constexpr const char* kToUseSpare =
    "a larger setting 'max-workers'; where workers share each step, never more than its logical shards";

}  // namespace dtrain::elastic
