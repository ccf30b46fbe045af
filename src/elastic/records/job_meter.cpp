#include "job_meter.hpp"

#include <algorithm>

namespace dtrain::elastic {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr std::chrono::seconds kWindow{10};

}  // namespace

void JobMeter::heard(const Progress& progress, Time now) {
  const std::uint64_t samples = progress.position.samples_seen;
  if (!begun_) {
    if (samples == 0) return;
    begun_ = now;
  } else if (samples == samples_seen()) {
    return;
  } else if (samples < samples_seen()) {
    seen_.clear();  // the counted samples were lost with the worker that had them
  } else {
    const Seconds since_last = now - seen_.back().time;
    const bool undisturbed = progress.generation == generation_;
    useful_ += undisturbed ? since_last : std::min(since_last, Seconds(progress.step_seconds));
  }
  generation_ = progress.generation;
  seen_.push_back({now, samples});
  while (seen_.size() > 2 && seen_[1].time < now - kWindow) seen_.pop_front();
}

double JobMeter::samples_per_second(Time now) const {
  if (seen_.size() < 2) return 0;
  const Seconds time = now - seen_.front().time;
  return time.count() > 0 ? static_cast<double>(seen_.back().samples - seen_.front().samples) / time.count() : 0;
}

double JobMeter::goodput(Time now) const {
  if (!begun_ || now <= *begun_) return 1;
  return std::min(1.0, useful_ / Seconds(now - *begun_));
}

}  // namespace dtrain::elastic
