#include <algorithm>
#include <cmath>

#include "decide/compute_times.hpp"
#include "job_tables.hpp"

namespace dtrain::elastic {
namespace {

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

Json worker_row(const Worker& worker, std::optional<int> rank, double straggler_score) {
  return Json::object({{"worker", worker.id},
                       {"slot", worker.slot},
                       {"rank", rank ? Json(*rank) : Json()},
                       {"pid", worker.pid},
                       {"phase", phase_name(worker.progress.phase)},
                       {"step_seconds", rounded(worker.progress.step_seconds, 1e-6)},
                       {"compute_seconds", rounded(worker.progress.compute_seconds, 1e-6)},
                       {"straggler", rounded(straggler_score, 1e-3)},
                       {"sent_bytes", worker.progress.traffic.sent},
                       {"received_bytes", worker.progress.traffic.received}});
}

class HostRow {
 public:
  HostRow(const State& state, const Host& host, const ComputeTimes& times, const JobMeter& meter, Time now)
      : state_(state), host_(host), times_(times), now_(now) {
    for (const WorkerId id : host.slots) {
      if (const auto found = state.workers.find(id); found != state.workers.end()) add(found->second);
    }
    samples_per_second_ = share_ * meter.samples_per_second(now);
  }

  Json json() const {
    const Explanation why = explain(state_, host_, now_);
    Json row = Json::object({{"name", host_.line.name},
                             {"address", host_.address},
                             {"state", enum_name(kHostPhaseNames, phase_of(state_, host_, now_))},
                             {"ranks", ranks_},
                             {"pids", pids_},
                             {"generation", generation_},
                             {"samples_per_second", rounded(samples_per_second_, 0.01)},
                             {"slots", host_.line.slots},
                             {"failures", host_.failures},
                             {"workers", workers_}});
    if (!why.reason.empty()) row["reason"] = why.reason;
    if (!why.next.empty()) row["next"] = why.next;
    if (!why.forget_key.empty()) row["forget_key"] = why.forget_key;
    return row;
  }

 private:
  void add(const Worker& worker) {
    const std::optional<int> rank = rank_of(state_, worker.id);
    workers_.push_back(worker_row(worker, rank, times_.straggler_score(worker)));
    if (worker.pid != 0) pids_.push_back(worker.pid);
    if (rank) ranks_.push_back(*rank);
    if (!state_.current || std::ranges::count(state_.current->members, worker.id) == 0) return;
    generation_ = state_.current->number;
    const double share = worker.progress.share;
    share_ += share > 0 ? share : 1.0 / static_cast<double>(state_.current->members.size());
  }

  const State& state_;
  const Host& host_;
  const ComputeTimes& times_;
  const Time now_;
  Json ranks_ = Json::array(), pids_ = Json::array(), workers_ = Json::array();
  Json generation_;  // null: no member
  double share_ = 0, samples_per_second_ = 0;
};

}  // namespace

Json hosts_list(const State& state, const JobMeter& meter, Time now) {
  Json hosts = Json::array();
  const ComputeTimes times(state);
  for (const auto& [name, host] : state.hosts) hosts.push_back(HostRow(state, host, times, meter, now).json());
  const std::size_t workers = state.current ? state.current->members.size() : 0;
  const StepSize& size = state.policy.step_size;
  const JobStanding standing = standing_of(state, now);
  const std::optional<double> good = meter.goodput(now);
  Json list = Json::object({{"schema", "dtrain.hosts-list/1"},
                            {"elastic", state.policy.elastic},
                            {"state", enum_name(kJobPhaseNames, standing.phase)},
                            {"generation", state.current ? Json(state.current->number) : Json()},
                            {"workers", workers},
                            {"global_batch", size.samples(workers)},
                            {"rate_factor", workers > 0 ? size.rate_factor(workers) : 1.0},
                            {"samples_seen", meter.samples_seen()},
                            {"samples_per_second", rounded(meter.samples_per_second(now), 0.01)},
                            {"goodput_percent", good ? Json(rounded(100 * *good, 0.01)) : Json()},
                            {"sent_bytes", state.traffic.sent},
                            {"hosts", std::move(hosts)}});
  if (!standing.reason.empty()) list["state_reason"] = standing.reason;
  if (standing.ends) list["stops_in_seconds"] = rounded(std::chrono::duration<double>(*standing.ends).count(), 0.1);
  return list;
}

}  // namespace dtrain::elastic
