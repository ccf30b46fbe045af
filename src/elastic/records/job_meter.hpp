// How fast the job trains, and how much of its time counts: from the heartbeats of the rank that speaks for all.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include <dtrain/elastic/state.hpp>

namespace dtrain::elastic {

class JobMeter {
 public:
  // A heartbeat of rank 0 of the current generation.
  void heard(const Progress& progress, Time now);

  // Over the last ten seconds; 0 before there is anything to tell.
  double samples_per_second(Time now) const;
  // Of the time since the first step was seen, the part in which steps were made that count: not the waits at changes
  // of generation, not the steps that were begun and lost. 0 ... 1; 1 before there is anything to tell.
  double goodput(Time now) const;
  std::uint64_t samples_seen() const { return seen_.empty() ? 0 : seen_.back().samples; }

 private:
  struct Sight {
    Time time{};
    std::uint64_t samples = 0;
  };
  std::deque<Sight> seen_;  // when it became more
  std::optional<Time> begun_;
  Generation generation_ = 0;  // of the last sight
  std::chrono::duration<double> useful_{};
};

}  // namespace dtrain::elastic
