// Decides which of the signals that reach an agent asks for something new.
#pragma once

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
  [[nodiscard]] StopRequest hear(int signal, SignalSource source) {
    const bool first_of_parent = source == SignalSource::parent && !std::exchange(parent_spoke_, true);
    if (!std::exchange(heard_, true)) return StopRequest::first;
    const bool repeats = first_of_parent || source == SignalSource::parents_death || is_warning(signal);
    return repeats ? StopRequest::repeated : StopRequest::further;
  }

 private:
  bool heard_ = false;
  bool parent_spoke_ = false;
};

}  // namespace dtrain::elastic
