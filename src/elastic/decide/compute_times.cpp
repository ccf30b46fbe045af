#include "compute_times.hpp"

#include <algorithm>

#include <dtrain/base/stats.hpp>

#include "decision_context.hpp"

namespace dtrain::elastic {

ComputeTimes::ComputeTimes(const State& state) {
  if (!state.current) return;
  for (const WorkerId id : state.current->members) {
    const double seconds = state.workers.at(id).compute_seconds;
    if (seconds > 0) ascending_.push_back(seconds);
  }
  std::ranges::sort(ascending_);
}

double ComputeTimes::usual_of_others(const Worker& worker) const {
  const auto own = std::ranges::lower_bound(ascending_, worker.compute_seconds);
  if (own == ascending_.end() || *own != worker.compute_seconds || ascending_.size() == 1) return 0;
  return interpolated_median_without(ascending_, static_cast<std::size_t>(own - ascending_.begin()));
}

double ComputeTimes::straggler_score(const Worker& worker) const {
  const double usual = is_member(worker) ? usual_of_others(worker) : 0;
  return usual > 0 ? worker.compute_seconds / usual : 1;
}

}  // namespace dtrain::elastic
