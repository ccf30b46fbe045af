#include <fmt/format.h>

#include <iterator>

#include "decide/compute_times.hpp"
#include "job_tables.hpp"

namespace dtrain::elastic {
namespace {

class Text {
 public:
  void family(const char* name, const char* kind, const char* help) {
    fmt::format_to(std::back_inserter(text_), "# HELP dtrain_{0} {2}\n# TYPE dtrain_{0} {1}\n", name, kind, help);
    name_ = name;
  }
  void value(double value, const std::string& labels = {}) {
    fmt::format_to(std::back_inserter(text_), "dtrain_{}{} {:.10g}\n", name_, labels, value);
  }
  void one(const char* name, const char* kind, const char* help, double number) {
    family(name, kind, help);
    value(number);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  const char* name_ = "";
};

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

std::string labels_of(const State& state, WorkerId id, int rank) {
  const Worker& worker = state.workers.at(id);
  return fmt::format("{{rank=\"{}\",host=\"{}\"}}", rank, escaped(worker.host));
}

// One value for each member, with its rank. A new coordinator may not know the rank: such a member has no value.
template <typename Value>
void by_rank(Text& text, const State& state, Value value_of) {
  if (!state.current) return;
  for (const WorkerId id : state.current->members) {
    if (const auto rank = rank_of(state, id)) text.value(value_of(state.workers.at(id)), labels_of(state, id, *rank));
  }
}

// The last text of a job stays after its end, and members of a job that pauses stay members.
bool trains(const State& state) {
  return state.current && !state.current->members.empty() && !state.ending && !state.freezing;
}

void hosts_by_state(Text& text, const State& state, Time now) {
  std::map<std::string, int> counts;
  for (const auto& [name, host] : state.hosts) ++counts[enum_name(kHostPhaseNames, phase_of(state, host, now))];
  text.family("hosts", "gauge", "Hosts of the job by what they are.");
  for (const auto& [name, count] : counts) text.value(count, fmt::format("{{state=\"{}\"}}", name));
}

}  // namespace

std::string prometheus_text(const State& state, const JobMeter& meter, Time now) {
  Text text;
  const auto count = [](auto number) { return static_cast<double>(number); };
  text.one("generation", "gauge", "Number of the current membership.",
           state.current ? count(state.current->number) : 0);
  text.one("workers", "gauge", "Members that train.", trains(state) ? count(state.current->members.size()) : 0);
  text.one("samples_total", "counter", "Samples that the weights have seen.", count(meter.samples_seen()));
  text.one("samples_per_second", "gauge", "Of the whole job; 0 where nothing trains.",
           trains(state) ? meter.samples_per_second(now) : 0);
  if (const auto good = meter.goodput(now))
    text.one("goodput_ratio", "gauge", "Part of the time since the first step that made steps.", *good);
  text.one("worker_failures_total", "counter", "Workers that failed.", count(state.failures));
  hosts_by_state(text, state, now);
  text.family("step_seconds", "gauge", "A rank's last step.");
  by_rank(text, state, [](const Worker& worker) { return worker.progress.step_seconds; });
  text.family("compute_seconds", "gauge", "A rank's last step without waiting for others.");
  by_rank(text, state, [](const Worker& worker) { return worker.progress.compute_seconds; });
  const ComputeTimes times(state);
  text.family("straggler_score", "gauge", "A rank's compute time as a multiple of the median of the others.");
  by_rank(text, state, [&](const Worker& worker) { return times.straggler_score(worker); });
  text.one("sent_bytes_total", "counter",
           "Bytes that the workers have sent each other; 0 where the transport does not say.",
           count(state.traffic.sent));
  return text.take();
}

}  // namespace dtrain::elastic
