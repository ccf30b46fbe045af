// Speed and goodput of the job, from the heartbeats of rank 0.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include <dtrain/elastic/policy.hpp>

#include "earlier_work.hpp"

namespace dtrain::elastic {

class JobMeter {
 public:
  // A heartbeat of rank 0 of the current generation.
  void heard(const Progress& progress, Time now);

  // Continues the sums of an earlier coordinator, which saw steps until `until`; `wall` is the same moment.
  void resume(const EarlierWork& work, Time until, WallTime wall);

  // Over the last ten seconds, or a few steps where they take longer; 0 before the second heartbeat with progress, and
  // once there was none for so long.
  double samples_per_second(Time now) const;
  // Goodput: fraction of the wall time since the first step that was spent in committed steps, without waits at changes
  // of generation and without lost steps. 0 to 1; nullopt until steps were heard of twice, which measures a time.
  std::optional<double> goodput(Time now) const;
  std::uint64_t samples_seen() const { return seen_.empty() ? 0 : seen_.back().samples; }

 private:
  struct Sight {
    Time time{};
    std::uint64_t samples = 0;
  };
  std::deque<Sight> seen_;  // times at which the number of samples grew
  std::optional<Time> begun_;
  Generation generation_ = 0;  // of the last sight
  std::chrono::duration<double> useful_{};
  bool measured_ = false;  // there was a time between two sights, here or under an earlier coordinator
};

}  // namespace dtrain::elastic
