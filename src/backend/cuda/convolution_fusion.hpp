// Calls that a device can do at once, fused: a pass over memory less for each. Pure.
#pragma once

#include <functional>
#include <vector>

#include "call.hpp"

namespace dtrain::backend::cuda {

// A convolution whose result a batch norm sums up next leaves the sums itself, as its `moments`, where `fuses` says
// that the device does so. A norm's result that one convolution alone reads is not written where `fuses` says that the
// device computes it in both directions that read it. All else is left as it is.
std::vector<Call> fused(std::vector<Call> calls, const std::function<bool(const Convolution&)>& fuses);

}  // namespace dtrain::backend::cuda
