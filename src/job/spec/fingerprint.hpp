// The fingerprint: what must be equal for workers to compute the same bits, as far as it is known before computing; a
// probe that every worker computes (Membership::probed) covers the rest.
#pragma once

#include <string>

#include "train_run.hpp"

namespace dtrain::job {

// "dtrain 0.1.0 build 1f2e3d4c with libdnnl.so.2 build 9a8b7c6d, <backend>, float32": version and build of this program
// and of the libraries that compute, instruction set, type.
std::string fingerprint_of(const TrainRun& run);

}  // namespace dtrain::job
