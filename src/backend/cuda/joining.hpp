// Calls that a device can do at once, joined: a pass over memory less for each. Pure.
#pragma once

#include <functional>
#include <vector>

#include "call.hpp"

namespace dtrain::backend::cuda {

// A convolution whose result a batch norm sums up next leaves the sums itself, as its `moments`, where `joins` says
// that the device does so. What
// a norm makes for one convolution alone is not written where `joins` says that the device computes it in both
// directions that read it. All else is left as it is.
std::vector<Call> joined(std::vector<Call> calls, const std::function<bool(const Convolution&)>& joins);

}  // namespace dtrain::backend::cuda
