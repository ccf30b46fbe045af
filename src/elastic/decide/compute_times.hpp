// How long the members compute for a step, and how much longer one of them does than the others.
#pragma once

#include <vector>

#include "state.hpp"

namespace dtrain::elastic {

// Of all members of the current generation that were measured, as they are now. Made once for a look at all of them.
class ComputeTimes {
 public:
  explicit ComputeTimes(const State& state);
  // The median of the others; 0 where the worker or all others were not measured. A worker is no part of what it is
  // compared with, because in a small job the slow one would be the median.
  double usual_of_others(const Worker& worker) const;
  // Its time as a multiple of the median of the others; 1 when unknown.
  double straggler_score(const Worker& worker) const;

 private:
  std::vector<double> ascending_;  // seconds
};

}  // namespace dtrain::elastic
