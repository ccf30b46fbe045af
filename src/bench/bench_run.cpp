#include "bench_run.hpp"

#include <algorithm>
#include <limits>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stats.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/train/batch_feed.hpp>

#include "config/synthetic_data.hpp"
#include "job/spec/process_facts.hpp"
#include "phase_clock.hpp"
#include "step_parts.hpp"

namespace dtrain::bench {
namespace {

struct Enough {};

// Ends the run with an exception of its own, so that nothing of it is saved.
class StepClock final : public train::IgnoringObserver {
 public:
  StepClock(StepTimes& times, const BenchLength& length, PhaseClock& phases)
      : times_(times), length_(length), phases_(phases) {}

  void on_step(const train::StepReport& report) override {
    if (seen_++ == 0) {
      times_.first_step = job::time_since_exec().count();
      whole_ = report.samples;
    }
    std::map<elastic::Phase, double> phases = phases_.take();
    if (seen_ <= length_.warmup || report.samples < whole_) return;
    times_.seconds.push_back(report.time.count());
    loading_.push_back(phases[elastic::Phase::loading]);
    applying_.push_back(phases[elastic::Phase::applying]);
    measured_ += report.time.count();
    const int steps = static_cast<int>(times_.seconds.size());
    const bool by_time = length_.steps == 0;
    if (by_time ? measured_ < length_.seconds && steps < length_.enough_steps : steps < length_.steps) return;
    times_.loading = median(loading_);
    times_.applying = median(applying_);
    throw Enough();
  }
  void on_warning(const std::string& text) override { times_.warnings.push_back(text); }

 private:
  StepTimes& times_;
  const BenchLength& length_;
  PhaseClock& phases_;
  std::vector<double> loading_, applying_;
  int seen_ = 0;
  int whole_ = 0;  // samples of the first step; the last one of an epoch may have fewer
  double measured_ = 0;
};

}  // namespace

double StepTimes::share(double quantile) const {
  DTRAIN_CHECK(!seconds.empty(), "at least one step was measured");
  return dtrain::quantile(seconds, quantile);
}

StepTimes time_steps(const nn::Graph& graph, backend::Executable& executable, data::Loader& loader,
                     train::TrainerOptions options, const BenchLength& length) {
  options.epochs = std::numeric_limits<std::uint32_t>::max();
  options.schedule.base = config::kHarmlessRate;
  StepTimes times;
  const auto alone = elastic::make_fixed_membership(comm::make_single());
  PhaseClock phases(*alone);
  StepClock clock(times, length, phases);
  try {
    const train::TrainResult result = train::train(graph, executable, loader, nullptr, phases, options, nullptr, clock);
    if (result.ended == train::TrainResult::Ended::stopped) {
      throw Interrupted(stop_signal(), "stopped by a signal while measuring");
    }
  } catch (const Enough&) {
  } catch (const Error& error) {
    if (stop_signal() == 0) throw;
    throw Interrupted(stop_signal(), error.what());
  }
  times.peak_memory = job::peak_memory_bytes();
  std::sort(times.seconds.begin(), times.seconds.end());
  return times;
}

backend::Profile profile_shard(backend::Executable& executable, data::Loader& loader, int samples) {
  constexpr int kRepeats = 5;
  loader.start(0, {{0, samples}});
  const std::optional<data::Batch> batch = loader.next();
  DTRAIN_CHECK(batch, "a loader gives the slice that it was asked for");
  return executable.profile(train::host_batch(*batch), kRepeats);
}

double operations_seconds(const backend::Profile& profile, int shards, int lanes) {
  double shard = 0;
  for (const backend::OperationTime& operation : profile.of_shard) shard += operation.seconds;
  return shard * rounds_of(shards, lanes);
}

double bare_convolution_seconds(const backend::Profile& profile, int shards, int lanes) {
  double shard = 0;
  for (const backend::OperationTime& operation : profile.of_shard) {
    if (operation.kind == "convolution") shard += operation.bare_seconds;
  }
  return shard * rounds_of(shards, lanes);
}

}  // namespace dtrain::bench
