// Decides which of the signals that reach an agent asks for something new.
#pragma once

#include <chrono>
#include <utility>

#include <dtrain/base/stop.hpp>

namespace dtrain::elastic {

// A parent passes its own signals on, and its death sends one for each of its threads.
enum class SignalSource { parent, parents_death, other };
enum class StopRequest { repeated, first, further };

// A scheduler such as Slurm signals every process of a job: one request reaches the agent directly, and once more from
// its parent, which got the same signal.
class StopRequests {
 public:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] StopRequest hear(int signal, SignalSource source, Time now) {
    const bool first_of_parent = source == SignalSource::parent && !std::exchange(parent_spoke_, true);
    if (std::exchange(first_, first_ == 0 ? signal : first_) == 0) {
      heard_at_ = now;
      return StopRequest::first;
    }
    const bool is_copy = first_of_parent && signal == first_ && now - heard_at_ < kOneRequest;
    const bool repeats = is_copy || source == SignalSource::parents_death || is_warning(signal);
    return repeats ? StopRequest::repeated : StopRequest::further;
  }

 private:
  static constexpr std::chrono::seconds kOneRequest{2};  // in which a signal has reached all processes
  int first_ = 0;                                        // the signal of the first request; 0: none was heard
  Time heard_at_{};
  bool parent_spoke_ = false;
};

}  // namespace dtrain::elastic
