#include "job_meter.hpp"

#include <algorithm>

namespace dtrain::elastic {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr std::chrono::seconds kWindow{10};
constexpr int kStepsMissed = 3;  // a job that makes slow steps stands still after so many of them

}  // namespace

void JobMeter::heard(const Progress& progress, Time now) {
  const std::uint64_t samples = progress.position.samples_seen;
  if (seen_.empty()) {
    if (samples == 0) return;
    if (!begun_) begun_ = now;
    if (now > *begun_) useful_ += std::min<Seconds>(now - *begun_, Seconds(progress.step_seconds));
  } else if (samples == samples_seen()) {
    return;
  } else if (samples < samples_seen()) {
    seen_.clear();  // the counted samples were lost with the worker that had them
  } else {
    const Seconds since_last = now - seen_.back().time;
    const bool undisturbed = progress.generation == generation_;
    useful_ += undisturbed ? since_last : std::min(since_last, Seconds(progress.step_seconds));
    measured_ = true;
  }
  generation_ = progress.generation;
  seen_.push_back({now, samples});
  while (seen_.size() > 2 && seen_[1].time < now - kWindow) seen_.pop_front();
}

void JobMeter::resume(const EarlierWork& work, Time until, WallTime wall) {
  const Seconds since = std::max<Seconds>(wall - work.first_step, Seconds(0));
  begun_ = until - std::chrono::duration_cast<Time::duration>(since);
  useful_ = std::max(since - work.paused, Seconds(0));
  measured_ = !work.is_of_program;
}

double JobMeter::samples_per_second(Time now) const {
  if (seen_.size() < 2) return 0;
  const auto last_interval = seen_.back().time - seen_[seen_.size() - 2].time;
  if (now - seen_.back().time > std::max<Time::duration>(kWindow, kStepsMissed * last_interval)) return 0;
  const Seconds time = now - seen_.front().time;
  return time.count() > 0 ? static_cast<double>(seen_.back().samples - seen_.front().samples) / time.count() : 0;
}

std::optional<double> JobMeter::goodput(Time now) const {
  if (!measured_) return std::nullopt;
  if (now <= *begun_) return 1;
  return std::min(1.0, useful_ / Seconds(now - *begun_));
}

}  // namespace dtrain::elastic
