// One call of decide() under way. The functions of this folder take a Turn, change its state and add its actions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dtrain/elastic/decide.hpp>

namespace dtrain::elastic {

struct Turn {
  State& state;
  std::vector<Action>& actions;
  const Time now;
  bool settle = false;  // hosts, processes or generations may have to change: not after a heartbeat

  Worker* find(WorkerId id);
  Host& host_of(const Worker& worker) { return state.hosts.at(worker.host); }
  std::vector<WorkerId> worker_ids() const;

  void add(Action action) { actions.push_back(std::move(action)); }
  void send(WorkerId worker, ToWorker message) { add(Send{{worker}, std::move(message)}); }
  void send(std::vector<WorkerId> workers, ToWorker message);  // nothing when there are none
  void say(std::string text, std::string hint = {}, Say::Kind kind = Say::Kind::note);
  // An event that names a worker also names its host.
  void emit(std::string_view event, Json::Object details);
  void emit(std::string_view event, const Worker& worker, Json::Object details = {});
  void enter_phase(Worker& worker, WorkerPhase phase);

  // Time that the coordinator itself was held up does not count.
  bool passed(Time since, Duration limit) const;
};

// Members of the current generation train or are frozen together; everybody else waits at home.
inline bool is_member(const Worker& worker) { return worker.phase == WorkerPhase::member; }
// Its process may become a member, or is one.
bool is_usable(const Worker& worker);
// Its slot may be used: its host is wanted, and there are not too many workers.
bool is_allotted(const State& state, const Worker& worker);
// All members of the generation that ends are frozen, so that another can begin at once.
bool all_frozen(const State& state);
bool contains(std::span<const WorkerId> ids, WorkerId id);
Json seconds_between(const std::optional<Time>& from, const std::optional<Time>& to);
Json host_names(const State& state, std::span<const WorkerId> workers);
Json lines_json(std::span<const std::string> lines);
std::string count_of(std::size_t number, std::string_view noun);  // "1 worker", "2 workers"
std::string name_of(const Worker& worker);                        // "worker 3 on w2"

}  // namespace dtrain::elastic
